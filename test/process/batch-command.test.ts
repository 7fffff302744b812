/** `gatehouse batch` against a gateway process, with a line in between that can be cut. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import net, { type AddressInfo } from 'node:net';
import path from 'node:path';
import { after, test } from 'node:test';
import { until } from '../../src/testing/clock/clock.ts';
import { emptyFolder } from '../../src/testing/database/database.ts';
import { INFERENCE_KEY } from '../../src/testing/gateway/gateway.ts';
import { runCommand } from '../../src/testing/process/command.ts';
import { commandEnvironment, plannedYaml, startGatewayProcess } from '../../src/testing/process/gateway-process.ts';
import { PlannedUpstream } from '../../src/testing/upstream/planned-upstream.ts';
import { batchesOf, type Json, scripted } from '../batches/batches-client.ts';
import { ROOT } from '../rules/source-files.ts';

const MAIN = path.join(ROOT, 'build', 'start.js');
const onEnd = { after: (close: unknown) => after(close as () => Promise<void>) } as never;
const folder = emptyFolder(onEnd);

const upstream = await new PlannedUpstream().listen();
after(() => upstream.close());
const gateway = await startGatewayProcess(onEnd, { yaml: plannedYaml(upstream.url) });

const inFolder = (name: string) => path.join(folder, name);

const home = { folder, dataDir: inFolder('data') };
const AS_CLIENT = { GATEHOUSE_URL: gateway.url, GATEHOUSE_API_KEY: INFERENCE_KEY };

const run = (args: readonly string[], env: Record<string, string> = {}) =>
  runCommand(home, ['batch', ...args], { ...AS_CLIENT, ...env });

interface Running {
  child: ChildProcess;
  seen: { out: string; err: string };
  /** Resolves to the exit code. */
  ended: Promise<number | null>;
}

/** The same as a process of its own, which can be signalled. */
function start(args: readonly string[]): Running {
  const env = { ...commandEnvironment(home), ...AS_CLIENT };
  const child = spawn(process.execPath, [MAIN, 'batch', ...args], { cwd: folder, env });
  after(() => child.kill('SIGKILL'));
  const seen = { out: '', err: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    seen.out += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    seen.err += text;
  });
  return { child, seen, ended: new Promise((resolve) => child.on('close', resolve)) };
}

function written(name: string, lines: readonly object[]): string {
  writeFileSync(inFolder(name), lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  return name;
}

const many = (name: string, count: number, script: (n: number) => object = (n) => ({ text: `word ${n}` })) =>
  written(
    name,
    Array.from({ length: count }, (_, n) => scripted(`${name}-${n}`, script(n))),
  );

const results = (name: string): Json[] =>
  readFileSync(inFolder(name), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));

/** Forwards connections to the gateway; `watch` may destroy them. */
async function line(watch: (client: net.Socket, toClient: Buffer, passed: number) => 'pass' | 'cut'): Promise<string> {
  const { hostname, port } = new URL(gateway.url);
  const server = net.createServer((client) => {
    const far = net.connect(Number(port), hostname);
    let passed = 0;
    client.on('error', () => {}).on('close', () => far.destroy());
    far.on('error', () => {}).on('close', () => client.end());
    client.pipe(far);
    far.on('data', (chunk: Buffer) => {
      passed += chunk.length;
      if (watch(client, chunk, passed) === 'cut') client.destroy();
      else client.write(chunk);
    });
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  after(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test('a file is submitted and watched, its results are downloaded, and it is submitted only once', async () => {
  const file = many('once.jsonl', 20);
  const args = ['submit', file, '--model', 'simulated/script', '--watch', '--output', 'once.results'];
  const { code, out, err } = await run(args);
  assert.equal(code, 0, err);
  assert.match(out, /^batch_[0-9a-f]{32}\n$/);
  assert.match(err, /20 requests submitted\n/);
  assert.match(err, /completed 100% 20\/20\n/);
  assert.match(err, /completed; 20 of 20 requests completed, 0 failed, [\d.e-]+ USD\n$/);
  assert.ok(!err.includes('\r') && !err.includes('\u001b'), 'no bar without a terminal');
  assert.deepEqual(
    results('once.results').map(({ custom_id: id, response }) => [id, response.body.choices[0].message.content]),
    Array.from({ length: 20 }, (_, n) => [`once.jsonl-${n}`, `word ${n}`]),
  );
  assert.ok(!existsSync(inFolder('once.results.partial')));
  const again = await run(['submit', file, '--model', 'simulated/script']);
  assert.deepEqual([again.code, again.out], [0, out]);
  const anew = await run(['submit', file, '--model', 'simulated/script', '--new']);
  assert.notEqual(anew.out, out);
  const id = out.trim();
  assert.match(
    (await run(['status', id])).out,
    new RegExp(`^${id}  completed\n.*20 requests: 20 completed, 0 failed`, 's'),
  );
  const printed = await run(['results', id]);
  assert.deepEqual([printed.code, printed.out], [0, readFileSync(inFolder('once.results'), 'utf8')]);
  const listed = await run(['list', '--status', 'completed', '--json']);
  assert.ok(
    listed.out
      .trimEnd()
      .split('\n')
      .map((each) => JSON.parse(each).id)
      .includes(id),
  );
  assert.match((await run(['list'])).out, new RegExp(`^${id}  .* completed +20/20 `, 'm'));
  const refused = await run(args);
  assert.equal(refused.code, 2);
  assert.match(refused.err, /once\.results exists; --force overwrites it/);
});

test('a file for OpenAI works as it is; --model replaces the models of its lines', async () => {
  const requests = Array.from({ length: 3 }, (_, n) => ({
    custom_id: `o-${n}`,
    method: 'POST',
    url: '/v1/responses',
    body: { model: 'gpt-5-mini', input: JSON.stringify({ text: `word ${n}` }) },
  }));
  const file = written('openai.jsonl', requests);
  const { code, err } = await run(['submit', file, '--model', 'simulated/script', '--output', 'openai.results']);
  assert.equal(code, 0, err);
  assert.deepEqual(
    results('openai.results').map(({ response }) => response.body.object),
    ['response', 'response', 'response'],
  );
});

test('exit codes tell failed requests, wrong input, failed batches and refusals apart', async () => {
  const file = many('half.jsonl', 4, (n) => (n % 2 === 0 ? { text: 'x' } : { unknown: 'x' }));
  const failed = await run(['submit', file, '--model', 'simulated/script', '--output', 'half.results']);
  assert.equal(failed.code, 1, failed.err);
  assert.match(failed.err, /2 of 4 requests completed, 2 failed/);
  assert.equal(results('half.results').length, 4);
  const broken = written('broken.jsonl', [scripted('a')]);
  writeFileSync(inFolder(broken), '\n{"custom_id": "b"\n', { flag: 'a' });
  written('wrong.jsonl', [scripted('a'), { custom_id: 'b', body: { messages: [{ role: 'nobody', content: 'x' }] } }]);
  writeFileSync(inFolder('wrong.jsonl'), `\n${readFileSync(inFolder('wrong.jsonl'), 'utf8')}`);
  const model = ['--model', 'simulated/script'];
  const closed = await unusedUrl();
  for (const [args, code, message, env] of [
    [['submit', 'none.jsonl', ...model], 2, /there is no file none\.jsonl/],
    [['submit', broken, ...model], 2, /^line 3 is not a JSON object/],
    [['submit', 'wrong.jsonl', ...model], 4, /^line 3: requests\[1\] \(custom_id "b"\): messages\[0\]\.role/],
    [['submit', 'once.jsonl', '--model', 'none/none'], 4, /there is no model "none\/none"/],
    [['submit'], 2, /name one file\n\ngatehouse batch submit FILE/],
    [['submit', 'a', 'b'], 2, /name one file/],
    [['submit', 'once.jsonl', '--modell', 'x'], 2, /--modell/],
    [['submit', 'once.jsonl', ...model, '--output', 'nowhere/x'], 2, /nowhere\/x cannot be written \(ENOENT\)/],
    [['fetch'], 2, /unknown action fetch: submit, status/],
    [[], 2, /an action is missing: submit, status/],
    [['status', 'batch_none'], 4, /no batch with this id/],
    [['list'], 4, /give an inference key with --key or GATEHOUSE_API_KEY/, { GATEHOUSE_API_KEY: 'sk-wrong' }],
    [['list', '--key', 'sk-wrong'], 4, /give an inference key/],
    [['list'], 2, /an inference key is missing/, { GATEHOUSE_API_KEY: '' }],
    [['list', '--base-url', 'nonsense'], 2, /"nonsense" is not an http or https URL/],
    [['list', '--base-url', closed], 4, /the gateway at http:\/\/127\.0\.0\.1:\d+\/api\/v1 cannot be reached/],
    [['list', '--limit', '0'], 4, /limit/],
    [['list', '--status', 'bogus'], 2, /--status bogus is not one of validating, in_progress, .*, cancelled/],
  ] as [string[], number, RegExp, Record<string, string>?][]) {
    const outcome = await run(args, env);
    assert.match(outcome.err, message, args.join(' '));
    assert.equal(outcome.code, code, `${args.join(' ')}: ${outcome.err}`);
    assert.equal(outcome.out, '');
  }
  assert.match((await run(['--help'])).out, /gatehouse batch submit FILE/);
});

test('Ctrl-C leaves the batch running and shows how to continue; cancelling it is not a success', async () => {
  const held = { custom_id: 'held', body: planned({ tag: 'held', hold: 'head' }) };
  const watching = start(['submit', written('held.jsonl', [held]), '--model', 'test/planned', '--watch']);
  await until(() => upstream.tags('asked').has('held') && watching.seen.err.includes('in_progress'), 'it runs', 60_000);
  watching.child.kill('SIGINT');
  assert.equal(await watching.ended, 130);
  const { out, err } = watching.seen;
  const id = out.trim();
  assert.match(err, new RegExp(`the batch keeps running; watch it with: gatehouse batch status ${id} --watch\n`));
  assert.match((await run(['status', id])).out, /in_progress/);
  const unfinished = await run(['results', id]);
  assert.deepEqual([unfinished.code, unfinished.err], [4, 'the batch has no results while it is in_progress\n']);
  assert.match((await run(['cancel', id])).out, /cancelling/);
  upstream.release();
  const cancelled = await run(['status', id, '--watch']);
  assert.equal(cancelled.code, 3, cancelled.err);
});

test('a submission whose answer is lost is repeated and makes one batch', async () => {
  let isLost = false;
  const url = await line((_, chunk) => {
    if (isLost || !chunk.includes('202 Accepted')) return 'pass';
    isLost = true;
    return 'cut';
  });
  const { send } = batchesOf(gateway);
  const count = async () => (await send('GET', '/batches?limit=100')).body.data.length;
  const had = await count();
  const outcome = await run(['submit', many('lost.jsonl', 3), '--model', 'simulated/script', '--base-url', url]);
  assert.equal(outcome.code, 0, outcome.err);
  assert.ok(isLost);
  assert.match(outcome.err, /trying again/);
  assert.equal(await count(), had + 1);
});

test('a cut download is resumed, and so is one whose process was killed', async () => {
  const text = 'x'.repeat(2_000);
  const file = many('large.jsonl', 400, (n) => ({ text: `${n} ${text}` }));
  const { out } = await run(['submit', file, '--model', 'simulated/script', '--watch', '--output', 'whole.results']);
  const id = out.trim();
  const whole = readFileSync(inFolder('whole.results'));
  let cuts = 0;
  const cutting = await line((_, __, passed) => {
    if (passed < 300_000 || cuts === 2) return 'pass';
    cuts += 1;
    return 'cut';
  });
  const cut = await run(['results', id, '--output', 'cut.results', '--base-url', cutting]);
  assert.equal(cut.code, 0, cut.err);
  assert.equal(cuts, 2);
  assert.match(cut.err, /resuming/);
  assert.ok(readFileSync(inFolder('cut.results')).equals(whole));
  const printed = await run(['results', id, '--base-url', cutting]);
  assert.equal(printed.out, whole.toString());

  // Nothing more arrives, so that the process is killed in the middle.
  const stalling = await line((client, _, passed) => {
    if (passed > 300_000) client.pause().write = () => true;
    return 'pass';
  });
  const killed = start(['results', id, '--output', 'killed.results', '--base-url', stalling]);
  const partial = inFolder('killed.results.partial');
  await until(() => existsSync(partial) && readFileSync(partial).length > 100_000, 'a part arrived', 60_000);
  killed.child.kill('SIGKILL');
  await killed.ended;
  assert.ok(!existsSync(inFolder('killed.results')));
  // A half line, too.
  writeFileSync(partial, whole.subarray(0, readFileSync(partial).length + 1_000));
  let passedBytes = 0;
  const counting = await line((_, chunk) => {
    passedBytes += chunk.length;
    return 'pass';
  });
  const resumed = await run(['results', id, '--output', 'killed.results', '--base-url', counting]);
  assert.equal(resumed.code, 0, resumed.err);
  assert.ok(readFileSync(inFolder('killed.results')).equals(whole));
  assert.ok(passedBytes < whole.length - 90_000, `${passedBytes} of ${whole.length} bytes`);
  // The part of another batch is of no use.
  const foreign = [
    '{"id":"batch_0_1","custom_id":"a"}\n',
    // What begins in the middle, and what goes on with something else.
    whole.subarray(whole.indexOf('\n') + 1, -1_000),
    Buffer.concat([whole.subarray(0, whole.indexOf('\n') + 1), Buffer.from('a line\n'), whole.subarray(-1_000)]),
  ];
  for (const content of foreign) {
    writeFileSync(inFolder('other.results.partial'), content);
    assert.equal((await run(['results', id, '--output', 'other.results', '--force'])).code, 0);
    assert.ok(readFileSync(inFolder('other.results')).equals(whole));
  }
});

const planned = (plan: object) => ({
  max_tokens: 20,
  messages: [{ role: 'user', content: JSON.stringify(plan) }],
});

async function unusedUrl(): Promise<string> {
  const server = net.createServer();
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const { port } = server.address() as AddressInfo;
  await new Promise((closed) => server.close(closed));
  return `http://127.0.0.1:${port}`;
}
