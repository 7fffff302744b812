/** The first start as a newcomer sees it: on a terminal, and with its output in a file. */
import assert from 'node:assert/strict';
import { execFile, spawn, spawnSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { after, type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { until } from '../../src/testing/clock/clock.ts';
import { runCommand } from '../../src/testing/process/command.ts';
import {
  type GatewayHome,
  gatewayHome,
  launchGateway,
  serversOf,
  startGatewayProcess,
} from '../../src/testing/process/gateway-process.ts';
import { ROOT } from '../rules/source-files.ts';

const NO_KEYS = { GATEHOUSE_MANAGEMENT_KEY: '', GATEHOUSE_INFERENCE_KEY: '' };
const NO_TERMINAL =
  spawnSync('script', ['--version']).error !== undefined && 'needs the program `script` for a terminal';
const NO_CURL = spawnSync('curl', ['--version']).error !== undefined && 'needs curl';

/** Runs a pasted command as a shell does, and returns what it prints. */
async function paste(command: string, cwd: string): Promise<string> {
  return (await promisify(execFile)('sh', ['-c', command], { cwd })).stdout;
}

test('on a terminal the first start shows base URLs, each key once, and a curl that works as pasted', {
  skip: NO_TERMINAL || NO_CURL,
}, async (t) => {
  const terminal = await startOnTerminal(t, NO_KEYS, await gatewayHome(t, false));
  const shown = await terminal.until(/Try it:\s+curl [\s\S]*}'\s/);
  const [, inference = ''] = /^inference key: (\S+)$/m.exec(shown) ?? [];
  assert.match(shown, /^management key: \S+$/m);
  const root = /Console +(http:\/\/127\.0\.0\.1:\d+)\/console\/#\/sign-in\?code=[\w-]{43}$/m.exec(shown)?.[1];
  assert.ok(root, shown);
  assert.match(shown, new RegExp(`OpenAI base URL +${root}/api/v1$`, 'm'));
  assert.match(shown, new RegExp(`Anthropic base URL +${root}/api$`, 'm'));
  assert.match(shown, /Only the simulated model answers\. To add providers, set OPENAI_API_KEY/);
  assert.equal(shown.match(/migrated the database/g)?.length, 1);
  const curl = shown.slice(shown.indexOf('curl ', shown.indexOf('Try it:')));
  assert.ok(curl.includes(inference) && inference !== '');
  assert.match(await paste(curl, '/'), /Hello, Gatehouse/);
});

test('on a later start the curl takes the key from where it is', { skip: NO_TERMINAL || NO_CURL }, async (t) => {
  const home = await gatewayHome(t);
  const env = { GATEHOUSE_INFERENCE_KEY: 'a-key-that-the-operator-chose' };
  const terminal = await startOnTerminal(t, { ...NO_KEYS, ...env }, home);
  const shown = await terminal.until(/Try it:\s+curl [\s\S]*}'\s/);
  assert.ok(!shown.includes('inference key:') && !shown.includes(env.GATEHOUSE_INFERENCE_KEY), shown);
  const curl = shown.slice(shown.indexOf('curl ', shown.indexOf('Try it:')));
  const answer = await paste(`GATEHOUSE_INFERENCE_KEY=${env.GATEHOUSE_INFERENCE_KEY}\n${curl}`, '/');
  assert.match(answer, /Hello, Gatehouse/);
});

/** Of the next two tests: the first makes it, with these keys. */
const installed = await gatewayHome({ after: (close) => after(close as () => Promise<void>) }, false);
let tokens: string[] = [];

test('without a terminal every line is JSON, and the keys are only in a file of their owner, which the curl of the line "ready" reads', {
  skip: NO_CURL,
}, async (t) => {
  const gateway = await startGatewayProcess(t, { home: installed, env: NO_KEYS });
  t.diagnostic(`first start: ${Math.round(gateway.startMs)} ms to /ready`);
  const ready = await gateway.logged('ready');
  for (const line of gateway.output.split('\n')) if (line !== '') JSON.parse(line);
  assert.equal(ready['openai_base_url'], gateway.api);
  assert.equal(ready['anthropic_base_url'], `${gateway.url}/api`);
  assert.deepEqual(ready['providers'], ['simulated', 'local']);
  assert.ok(!String(ready['try']).includes('sk-'));
  assert.match(await paste(String(ready['try']), '/'), /Hello, Gatehouse/);
  for (const event of ['starting', 'creating the database', 'migrated the database', 'first keys written'])
    assert.equal(gateway.lines(event).length, 1, event);

  const file = path.join(installed.dataDir, 'first-keys.txt');
  assert.equal(gateway.lines('first keys written')[0]?.['file'], file);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  const keys = [...readFileSync(file, 'utf8').matchAll(/^(management|inference) key: (\S+)$/gm)];
  assert.deepEqual(
    keys.map(([, kind]) => kind),
    ['management', 'inference'],
  );
  tokens = keys.map(([, , token = '']) => token);
  for (const token of tokens) {
    assert.ok(!gateway.output.includes(token), 'a key is in the output');
    assert.equal((await gateway.get('/key', token)).status, 200);
  }
  assert.deepEqual(await gateway.end('SIGTERM'), { code: 0, signal: null });
  assert.deepEqual(serversOf(installed), []);
});

test('a later start makes no keys and reports a misspelled variable with the one that was meant, as the doctor does', async (t) => {
  const wrong = { GATEHOUSE_PROT: '1', GATEHOUSE_NONSENSE: 'x', OPENAI_APIKEY: 'x', GATEHOUSE_PORT_8484_TCP: 'tcp://' };
  const gateway = await startGatewayProcess(t, { home: installed, env: { ...wrong, ...NO_KEYS } });
  t.diagnostic(`later start: ${Math.round(gateway.startMs)} ms to /ready`);
  await gateway.logged('ready');
  assert.deepEqual(gateway.lines('first keys written'), []);
  for (const token of tokens) assert.equal((await gateway.get('/key', token)).status, 200);
  assert.deepEqual(
    gateway.lines('unknown environment variable').map(({ name, did_you_mean }) => [name, did_you_mean]),
    [
      ['GATEHOUSE_PROT', 'GATEHOUSE_PORT'],
      ['GATEHOUSE_NONSENSE', undefined],
      ['OPENAI_APIKEY', 'OPENAI_API_KEY'],
    ],
  );
  const { out } = await runCommand(installed, ['doctor', '--offline'], wrong);
  assert.match(out, /^note {2}configuration: GATEHOUSE_PROT is not a setting; did you mean GATEHOUSE_PORT\?$/m);
  await gateway.end('SIGTERM');
});

test('a misspelled member of the yaml file stops the start with the one that was meant', async (t) => {
  const gateway = await launchGateway(t, {
    yaml: 'port: 9000\nrate_limit: {}\nproviders:\n  - id: a\n    kind: chat\n    baseUrl: http://a\n    apikey: x\n',
  });
  await until(() => gateway.ended, 'the gateway ends');
  assert.match(gateway.output, /gatehouse\.yaml:1:1 has no member port; set the environment variable GATEHOUSE_PORT/);
  assert.match(gateway.output, /gatehouse\.yaml:2:1 has no member rate_limit; did you mean rate_limits\?/);
  assert.match(gateway.output, /:6:5 providers\[0\] has no member baseUrl; did you mean base_url\?/);
  assert.match(gateway.output, /:7:5 providers\[0\] has no member apikey; did you mean api_key\?/);
});

/** Starts the gateway with a pseudo terminal for its output. */
async function startOnTerminal(t: TestContext, env: Record<string, string>, at?: GatewayHome) {
  const home = at ?? (await gatewayHome(t));
  const command = `exec '${process.execPath}' '${path.join(ROOT, 'build', 'start.js')}' serve`;
  const child = spawn('script', ['-qec', command, '/dev/null'], {
    cwd: home.folder,
    env: {
      PATH: process.env['PATH'] ?? '',
      SHELL: '/bin/sh',
      GATEHOUSE_PORT: '0',
      GATEHOUSE_DATA_DIR: home.dataDir,
      ...env,
    },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let output = '';
  let ended = false;
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text.replaceAll('\r', '');
  });
  child.on('close', () => {
    ended = true;
  });
  home.closers?.push(async () => {
    // Ctrl-C.
    if (!ended) child.stdin.write('\x03');
    await until(() => ended, 'the gateway ends', 60_000);
  });
  return {
    async until(pattern: RegExp): Promise<string> {
      await until(() => ended || pattern.test(output), `the terminal shows ${pattern}:\n${output}`, 120_000);
      return output;
    },
  };
}
