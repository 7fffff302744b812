/** The published package: its content, and that it runs without anything else. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { until } from '../../src/testing/clock/clock.ts';
import { INFERENCE_KEY } from '../../src/testing/gateway/gateway.ts';
import { gatewayHome, serversOf, startGatewayProcess } from '../../src/testing/process/gateway-process.ts';
import { descendantsOf, isAlive, parentOf } from '../../src/testing/process/process.ts';
import { ROOT } from '../rules/source-files.ts';

/** Without the runtime of this project, which a user does not have: their own npm and Node.js. */
const USERS_PATH = (process.env['PATH'] ?? '')
  .split(path.delimiter)
  .filter((folder) => !folder.includes('node_modules'))
  .join(path.delimiter);

/** What the packing reads, so that the checkout itself is left alone. */
const PACKED = [
  'bin',
  'build',
  'src',
  'console',
  'package.json',
  'openapi.json',
  'README.md',
  'LICENSE',
  'CHANGELOG.md',
];

interface Packed {
  file: string;
  names: string[];
}

let packed: Packed | undefined;

test('the package holds the built service and nothing else', (t) => {
  const { file, names } = pack(t);
  for (const name of [
    'bin/gatehouse.js',
    'dist/main.js',
    'dist/console/index.html',
    'dist/LICENSES.txt',
    'openapi.json',
    'package.json',
  ]) {
    assert.ok(names.includes(name), name);
  }
  const strange = names.filter(
    (name) =>
      !/^(?:bin\/gatehouse\.js$|dist\/[^/]+\.js$|dist\/agent\/main\.js$|dist\/console\/[\w-]+\.(?:html|js|css)(?:\.br|\.gz)?$|dist\/LICENSES\.txt$|[A-Z]+(?:\.md)?$|openapi\.json$|package\.json$)/.test(
        name,
      ),
  );
  assert.deepEqual(strange, []);
  const licences = spawnSync('tar', ['-xOf', file, 'package/dist/LICENSES.txt'], { encoding: 'utf8' }).stdout;
  for (const licence of licences.split(/^-{80}\n\n/m)) {
    assert.match(
      licence,
      /^\S+ \d+\.\d+\.\d+ \((?:MIT|ISC|0BSD|BSD-3-Clause|Apache-2\.0)\)\n\n.*copyright.*permission/is,
    );
  }
  for (const name of ['pg-protocol', 'preact', 'typebox', 'undici'])
    assert.match(licences, new RegExp(`^${name} `, 'm'));
  assert.deepEqual(
    names.filter((name) => /\.test\.|\.scale\.|testing|arbitrary/.test(name)),
    [],
  );
});

const LINUX = process.platform === 'linux';

test('installed into an empty folder it starts, answers, and ends with its launcher', {
  skip: !LINUX && 'reads /proc',
}, async (t) => {
  const { file } = pack(t);
  const home = await gatewayHome(t, false);
  mkdirSync(home.folder, { recursive: true });
  writeFileSync(path.join(home.folder, 'package.json'), '{"private":true}');
  const install = npm(home.folder, 'install', '--no-audit', '--no-fund', file);
  if (
    install.status !== 0 &&
    /ENOTFOUND|ECONNREFUSED|ETIMEDOUT|EAI_AGAIN|ECONNRESET|E403|E5\d\d/.test(install.stderr)
  ) {
    return t.skip('the registry cannot be reached');
  }
  assert.equal(install.status, 0, install.stderr);

  const options = { home, command: ['npx', 'gatehouse', 'serve'], env: { PATH: USERS_PATH, HOME: home.folder } };
  const gateway = await startGatewayProcess(t, options);
  t.diagnostic(`first start of the installed package: ${Math.round(gateway.startMs)} ms`);
  const messages = [{ role: 'user', content: 'Hello, Gatehouse' }];
  const answer = await gateway.post('/chat/completions', { model: 'simulated/echo', messages });
  assert.equal(answer.status, 200);
  assert.match(await answer.text(), /Hello, Gatehouse/);

  const client = { PATH: USERS_PATH, HOME: home.folder, GATEHOUSE_URL: gateway.url, GATEHOUSE_API_KEY: INFERENCE_KEY };
  writeFileSync(
    path.join(home.folder, 'requests.jsonl'),
    `${JSON.stringify({ custom_id: 'a', body: { messages } })}\n`,
  );
  const args = ['gatehouse', 'batch', 'submit', 'requests.jsonl', '--model', 'simulated/echo', '--output', 'results'];
  const batch = spawnSync('npx', args, { cwd: home.folder, env: client, encoding: 'utf8' });
  assert.equal(batch.status, 0, batch.stderr);
  assert.match(readFileSync(path.join(home.folder, 'results'), 'utf8'), /Hello, Gatehouse/);

  const service = serviceBelow(gateway.pid);
  const launcher = parentOf(service) ?? 0;
  assert.match(commandOf(launcher), /gatehouse/);
  process.kill(launcher, 'SIGKILL');
  await until(() => !isAlive(service), 'the gateway ends', 60_000);
  assert.deepEqual(serversOf(home), []);
  await gateway.exit;
  assert.equal(gateway.lines('stopped').length, 1);

  const again = await startGatewayProcess(t, { ...options, command: [path.join('node_modules', '.bin', 'gatehouse')] });
  assert.deepEqual(await again.end('SIGINT'), { code: 0, signal: null });
  assert.deepEqual(serversOf(home), []);
});

test('npm scripts find the Node.js of the package, although npm 10 removes its link', { skip: !LINUX }, (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'gatehouse-link-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  for (const name of ['build/link-runtime.js', 'package.json']) cpSync(path.join(ROOT, name), path.join(folder, name));
  const link = path.join(folder, 'node_modules', '.bin', 'node');
  const run = () => spawnSync(process.execPath, [path.join(folder, 'build/link-runtime.js')], { encoding: 'utf8' });
  assert.equal(run().status, 0, 'without optional packages');
  assert.ok(!existsSync(link));
  const runtime = path.join(folder, 'node_modules', `node-linux-${process.arch}`, 'bin', 'node');
  mkdirSync(path.dirname(runtime), { recursive: true });
  writeFileSync(runtime, '');
  for (const time of ['first', 'second']) assert.equal(run().status, 0, time);
  assert.equal(realpathSync(link), realpathSync(runtime));
});

test("a clone starts with the user's Node.js where that link is missing", () => {
  const { status, stdout, stderr } = spawnSync('node', [path.join(ROOT, 'build', 'start.js'), 'help'], {
    env: { PATH: USERS_PATH },
    encoding: 'utf8',
  });
  assert.equal(status, 0, stderr);
  assert.match(stdout, /gatehouse/);
});

/** Packs once for all tests of this file. */
function pack(t: TestContext): Packed {
  if (packed !== undefined) return packed;
  const folder = mkdtempSync(path.join(tmpdir(), 'gatehouse-package-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  const sources = path.join(folder, 'sources');
  for (const name of PACKED) cpSync(path.join(ROOT, name), path.join(sources, name), { recursive: true });
  symlinkSync(path.join(ROOT, 'node_modules'), path.join(sources, 'node_modules'));
  const { status, stdout, stderr } = npm(sources, 'pack', '--json', '--pack-destination', folder);
  assert.equal(status, 0, stderr);
  // What the build prints comes before.
  const [report] = JSON.parse(stdout.slice(stdout.search(/^\[/m))) as { filename: string; files: { path: string }[] }[];
  assert.ok(report);
  packed = { file: path.join(folder, report.filename), names: report.files.map((each) => each.path) };
  t.diagnostic(`${packed.names.length} files`);
  return packed;
}

function npm(folder: string, ...args: string[]) {
  const env = { PATH: USERS_PATH, HOME: process.env['HOME'] ?? folder, ...registry() };
  return spawnSync('npm', args, { cwd: folder, env, encoding: 'utf8' });
}

/** npm takes its settings from the environment, too. */
function registry(): Record<string, string> {
  const own = Object.entries(process.env).filter(([name]) =>
    /^(?:npm_config_(?:registry|cache|userconfig)|NODE_EXTRA_CA_CERTS|https?_proxy)$/i.test(name),
  );
  return Object.fromEntries(own.filter((entry): entry is [string, string] => entry[1] !== undefined));
}

function serviceBelow(pid: number): number {
  const service = descendantsOf(pid).find((each) => commandOf(each).includes(path.join('dist', 'main.js')));
  assert.ok(service, 'the service runs below the launcher');
  return service;
}

function commandOf(pid: number): string {
  return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
}
