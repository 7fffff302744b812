/** `npm start` in a checkout: what runs is a bundle, and always of the sources as they are. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { appendFileSync, cpSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { after, type TestContext, test } from 'node:test';
import { emptyFolder } from '../../src/testing/database/database.ts';
import { MANAGEMENT_KEY } from '../../src/testing/gateway/gateway.ts';
import { plannedYaml, startGatewayProcess } from '../../src/testing/process/gateway-process.ts';
import { ROOT } from '../rules/source-files.ts';

const atEnd = { after: (close: unknown) => after(close as () => Promise<void>) };
/** Of the next three tests, which change it more and more. */
const clone = checkout(atEnd);

test('a start makes one bundle for all that start at once, and a new one when a source changed', async () => {
  const { run, bundles, change } = clone;
  const { version } = await import('../../package.json', { with: { type: 'json' } }).then((file) => file.default);
  const first = await Promise.all([run('version'), run('version')]);
  assert.deepEqual(first, Array(2).fill({ code: 0, out: `${version}\n`, err: '' }));
  const [made, ...others] = bundles();
  assert.deepEqual(others, []);

  assert.equal((await run('version')).out, `${version}\n`);
  assert.deepEqual(bundles(), [made]);

  change('console.log("changed");');
  assert.equal((await run('version')).out, `${version}\nchanged\n`);
  assert.equal(bundles().length, 2);
});

test('commands run in a clone as the README writes them', async (t) => {
  const { folder } = clone;
  const { version } = await import('../../package.json', { with: { type: 'json' } }).then((file) => file.default);
  const runs = (command: string, ...args: string[]) => runIn(folder, command, ...args);
  const runIn = (cwd: string, command: string, ...args: string[]) =>
    spawnSync(command, args, { cwd, encoding: 'utf8', env: { ...process.env, PATH: USERS_PATH } });
  const help = runs('npx', 'gatehouse', 'help');
  assert.equal(help.status, 0, help.stderr);
  assert.match(help.stdout, /gatehouse doctor/);
  assert.match(runs('node', path.join('bin', 'gatehouse.js'), 'version').stdout, new RegExp(`^${version}\n`));

  const bare = runIn(sources(t), 'npx', 'gatehouse', 'doctor');
  assert.equal(bare.status, 1);
  assert.match(bare.stderr, /Run `npm ci` first/);
  assert.ok(!/^\s+at /m.test(bare.stderr), bare.stderr);
});

test('where no bundle can be made the sources run, and say what is wrong with them', async () => {
  const { run, cache, change } = clone;
  rmSync(cache, { recursive: true, force: true });
  writeFileSync(cache, 'a file where the folder should be');
  const plain = await run('help');
  assert.equal(plain.code, 0);
  assert.match(plain.out, /gatehouse \[serve\]/);

  rmSync(cache);
  change('const =;');
  const broken = await run('help');
  assert.notEqual(broken.code, 0);
  assert.match(broken.err, /src\/main\.ts/);
});

test('threads and packages that are loaded on demand are found from a bundle', async (t) => {
  const yaml = plannedYaml('http://127.0.0.1:9/v1', { model: { upstream_id: 'gpt-4o' } });
  (yaml['providers'] as object[]).push({ id: 'local', kind: 'local' });
  const gateway = await startGatewayProcess(t, { yaml });
  const ask = async (route: string, body: object, key?: string): Promise<Record<string, unknown>> => {
    const answer = await gateway.post(route, body, key);
    const text = await answer.text();
    assert.ok(answer.ok, text);
    return JSON.parse(text) as Record<string, unknown>;
  };
  const messages = [{ role: 'user', content: 'hello world' }];
  const counted = await ask('/messages/count_tokens', { model: 'test/planned', max_tokens: 5, messages });
  assert.deepEqual(counted, { input_tokens: 2 + 4 + 3 });
  const { usage } = await ask('/embeddings', { model: 'local/use-lite', input: 'hello world' });
  assert.ok((usage as { prompt_tokens: number }).prompt_tokens > 0);

  const filter = { label: 'GREETING', pattern: 'h[e]llo', action: 'block' };
  await ask('/guardrails', { name: 'no greetings', content_filters: [filter] }, MANAGEMENT_KEY);
  const metrics = await fetch(`${gateway.url}/metrics`, { headers: { authorization: `Bearer ${MANAGEMENT_KEY}` } });
  assert.match(await metrics.text(), /process_cpu_seconds_total/);
});

/** Without the runtime of this project, which a user does not have: their own npm and Node.js. */
const USERS_PATH = (process.env['PATH'] ?? '')
  .split(path.delimiter)
  .filter((folder) => !folder.includes('node_modules'))
  .join(path.delimiter);

function sources(t: Pick<TestContext, 'after'>): string {
  const folder = emptyFolder(t);
  for (const name of ['bin', 'build', 'src', 'console', 'openapi.json', 'package.json', 'package-lock.json']) {
    cpSync(path.join(ROOT, name), path.join(folder, name), { recursive: true });
  }
  return folder;
}

/** The sources in a folder of their own, with packages but without a bundle. */
function checkout(t: Pick<TestContext, 'after'>) {
  const folder = sources(t);
  const modules = path.join(folder, 'node_modules');
  mkdirSync(modules);
  for (const name of readdirSync(path.join(ROOT, 'node_modules'))) {
    if (name !== '.cache') symlinkSync(path.join(ROOT, 'node_modules', name), path.join(modules, name));
  }
  const cache = path.join(modules, '.cache', 'gatehouse');
  mkdirSync(cache, { recursive: true });
  return {
    folder,
    cache,
    bundles: () => readdirSync(cache),
    change: (line: string) => appendFileSync(path.join(folder, 'src', 'main.ts'), `\n${line}\n`),
    async run(command: string) {
      const child = spawn(process.execPath, [path.join(folder, 'build', 'start.js'), command]);
      const code = new Promise((resolve) => child.once('close', resolve));
      const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
      return { code: await code, out, err };
    },
  };
}
