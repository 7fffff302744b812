/** A gateway from its first start to its end, as a process: what is promised to an operator. */
import assert from 'node:assert/strict';
import { chmodSync, existsSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';
import { ask } from '../../src/testing/clients/planned-client.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { databaseUrl, emptyDatabase } from '../../src/testing/database/database.ts';
import {
  type GatewayProcess,
  gatewayHome,
  launchGateway,
  plannedYaml,
  serversOf,
  startGatewayProcess,
} from '../../src/testing/process/gateway-process.ts';
import { PlannedUpstream } from '../../src/testing/upstream/planned-upstream.ts';

const atEnd = { after: (close: unknown) => after(close as () => Promise<void>) };
const upstream = await new PlannedUpstream().listen();
after(() => upstream.close());
const YAML = plannedYaml(upstream.url);

/** Most tests use the same installation: the gateway that the one before has left, or the next on its data folder. */
const home = await gatewayHome(atEnd);
let present: GatewayProcess | undefined;

async function running(yaml = YAML): Promise<GatewayProcess> {
  if (present === undefined || present.ended) present = await startGatewayProcess(atEnd, { home, yaml });
  return present;
}

test('a second gateway on one data folder says whose it is and leaves the first alone', async () => {
  const gateway = await running();
  const second = await launchGateway(atEnd, { home });
  assert.deepEqual(await second.exit, { code: 1, signal: null });
  assert.match(second.output, new RegExp(`another gateway \\(process ${gateway.pid}\\) runs on the data folder`));
  const told = second.output.split('\n').filter((line) => line !== '' && !line.startsWith('{'));
  assert.equal(told.length, 1, 'one line, no stack');
  assert.equal((await gateway.get('/key')).status, 200);
});

test('SIGHUP takes a new configuration; a wrong one is named by line and path, and the old one stays', async () => {
  const gateway = await running();
  const models = async () => {
    const { data } = (await (await gateway.get('/models')).json()) as { data: { id: string }[] };
    return data.map(({ id }) => id);
  };
  assert.deepEqual(await models(), ['test/planned']);
  gateway.writeYaml(plannedYaml(upstream.url, { model: { id: 'test/second' } }));
  gateway.signal('SIGHUP');
  await gateway.logged('configuration reloaded');
  assert.deepEqual(await models(), ['test/second']);

  gateway.writeYaml('providers:\n  - id: broken\n    kind: chat\n    base_url: nowhere\n    api_key: very-secret\n');
  gateway.signal('SIGHUP');
  const line = await gateway.logged('configuration not reloaded: the previous one stays in use');
  const problems = line['problems'] as string;
  assert.match(problems, /gatehouse\.yaml:4/);
  assert.match(problems, /providers\[0\]\.base_url/);
  assert.ok(!gateway.output.includes('very-secret'));
  assert.deepEqual(await models(), ['test/second']);
  gateway.writeYaml(YAML);
  gateway.signal('SIGHUP');
  await gateway.logged('configuration reloaded', 2);
  assert.deepEqual(await models(), ['test/planned']);
});

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  test(`${signal} lets an open stream finish, refuses new ones, and leaves no process`, async () => {
    const gateway = await running();
    const answer = ask(gateway.url, { tag: `open ${signal}`, events: 6, hold: 3 });
    await until(() => answer.events.length >= 3, 'the stream is half way');
    gateway.signal(signal);
    await gateway.logged('stopping');
    // A second one is what a launcher and a terminal make of one Ctrl-C.
    gateway.signal(signal);
    const late = ask(gateway.url, { tag: `late ${signal}` });
    await until(() => late.over, 'the late request ends');
    assert.equal(late.status, 0);
    assert.equal(gateway.ended, false);
    upstream.release();
    await until(() => answer.over, 'the stream ends');
    assert.ok(answer.done && answer.complete);
    assert.equal(answer.content, 'word '.repeat(6));
    assert.deepEqual(await gateway.exit, { code: 0, signal: null });
    assert.deepEqual(serversOf(home), []);
    assert.ok(!upstream.tags('asked').has(late.tag));
  });
}

test('a stream that outlasts the drain ends with one error event, its row is entered, and the exit is clean', async () => {
  await present?.end('SIGTERM');
  const yaml = plannedYaml(upstream.url, { limits: { drain: '300ms' } });
  const gateway = await running(yaml);
  const tagged = (what: 'asked' | 'left') => [seen, unseen, whole].every(({ tag }) => upstream.tags(what).has(tag));
  const seen = ask(gateway.url, { tag: 'seen', events: 6, hold: 2 });
  const unseen = ask(gateway.url, { tag: 'unseen', hold: 'body' });
  const whole = ask(gateway.url, { tag: 'whole', hold: 'head' }, { stream: false });
  await until(() => seen.events.length >= 2 && tagged('asked'), 'all three are under way');
  assert.deepEqual(await gateway.end('SIGTERM'), { code: 0, signal: null });
  await until(() => seen.over && unseen.over && whole.over, 'all three have ended');

  assert.ok(seen.complete, 'not cut');
  assert.ok(!seen.done, 'no end marker behind a failure');
  assert.equal(seen.errors.length, 1);
  assert.equal(seen.content, 'word word ');
  for (const answer of [unseen, whole]) {
    assert.equal(answer.status, 503, answer.text);
    assert.match(answer.text, /shutting down/);
  }
  await until(() => tagged('left'), 'every upstream call has ended');
  assert.deepEqual(serversOf(home), []);

  const next = await running();
  const rows = await Promise.all([seen, unseen, whole].map((answer) => generationOf(next, answer.generationId)));
  assert.deepEqual(
    rows.map((row) => row['native_tokens_completion']),
    [3, 0, 0],
  );
});

test('after kill -9 no postgres remains, and the next start enters open requests', async (t) => {
  const gateway = await running();
  const answer = ask(gateway.url, { tag: 'killed', events: 6, hold: 2 });
  await until(() => answer.events.length >= 2, 'the stream is half way');
  await gateway.end('SIGKILL');
  const killedAt = performance.now();
  await until(() => serversOf(home).length === 0, 'the last postgres ends', 30_000);
  t.diagnostic(`the last postgres ended ${Math.round(performance.now() - killedAt)} ms after the kill`);

  const next = await running();
  const row = await generationOf(next, answer.generationId);
  // Two events of five bytes were seen.
  assert.equal(row['native_tokens_completion'], 3);
  assert.equal(row['streamed'], true);
});

test('a killed gateway can be started again at once', async () => {
  const gateway = await running();
  await gateway.end('SIGKILL');
  const next = await running();
  assert.equal((await next.get('/key')).status, 200);
  assert.deepEqual(await next.end('SIGTERM'), { code: 0, signal: null });
});

test('two workers serve; the death of one costs its own streams only, whose rows are entered by the other', async (t) => {
  await present?.end('SIGTERM');
  const gateway = await startGatewayProcess(t, { home, yaml: YAML, env: { GATEHOUSE_WORKERS: '2' } });
  const answers = Array.from({ length: 10 }, (_, at) => ask(gateway.url, { tag: `w${at}`, events: 4, hold: 2 }));
  await until(() => answers.every((answer) => answer.events.length >= 2), 'ten streams are half way');
  process.kill(gateway.lines('listening')[0]?.['pid'] as number, 'SIGKILL');
  await gateway.logged('a worker exited and is being replaced');
  await until(() => answers.some((answer) => answer.over), 'some streams are cut');
  await gateway.logged('replayed the journal of a dead process');
  await gateway.logged('listening', 3);
  upstream.release();
  await until(() => answers.every((answer) => answer.over), 'all streams have ended');
  const done = answers.filter((answer) => answer.done);
  assert.ok(done.length > 0 && done.length < 10, `${done.length} of 10 went on`);
  for (const answer of answers) {
    const row = await generationOf(gateway, answer.generationId);
    assert.equal(row['native_tokens_completion'], answer.done ? 11 : 3, answer.tag);
  }
  const last = ask(gateway.url, { tag: 'last', events: 4, hold: 2 });
  await until(() => last.events.length >= 2, 'the last stream is half way');
  gateway.signal('SIGTERM');
  await gateway.logged('stopping');
  upstream.release();
  assert.deepEqual(await gateway.exit, { code: 0, signal: null });
  assert.ok(last.done);
  assert.deepEqual(serversOf(home), []);
});

test('gateways that start at once share an external PostgreSQL: keys, rows and counters are one', async (t) => {
  const env = { DATABASE_URL: databaseUrl(await emptyDatabase(t)) };
  const yaml = YAML;
  const [one, two] = await Promise.all([
    startGatewayProcess(t, { home: await gatewayHome(t, false), env, yaml }),
    startGatewayProcess(t, { home: await gatewayHome(t, false), env: { ...env, GATEHOUSE_WORKERS: '2' }, yaml }),
  ]);
  assert.deepEqual(readdirSync(one.home.dataDir).sort(), ['gateway.lock', 'journal']);
  const answers = Array.from({ length: 20 }, (_, at) => ask((at % 2 ? one : two).url, { tag: `e${at}` }));
  await until(() => answers.every((answer) => answer.over), 'all have ended');
  for (const answer of answers) assert.ok(answer.done, answer.text);
  for (const answer of answers) {
    assert.equal((await generationOf(one, answer.generationId))['native_tokens_completion'], 11);
    assert.equal((await generationOf(two, answer.generationId))['native_tokens_completion'], 11);
  }
  const usage = async (gateway: GatewayProcess) => {
    const { data } = (await (await gateway.get('/key')).json()) as { data: { usage: number } };
    return Math.round(data.usage * 1e9);
  };
  // 7 prompt tokens of 3 and 11 completion tokens of 15 micro-dollars.
  const expected = 20 * (7 * 3_000 + 11 * 15_000);
  assert.equal(await usage(one), expected);
  assert.equal(await usage(two), expected);
  assert.deepEqual(await one.end('SIGTERM'), { code: 0, signal: null });
  assert.deepEqual(await two.end('SIGINT'), { code: 0, signal: null });
});

test('a signal ends the first start in order; it changes no mode, far below a folder that only its user may enter', async (t) => {
  const { folder, ...others } = await gatewayHome(t, false);
  const locked = path.join(folder, 'locked');
  const deep = path.join(locked, ...Array.from({ length: 6 }, (_, at) => `folder-${at}-${'x'.repeat(30)}`));
  mkdirSync(deep, { recursive: true });
  chmodSync(locked, 0o700);
  chmodSync(deep, 0o750);
  const dataDir = path.join(deep, 'data');
  assert.ok(dataDir.length > 107);
  const home = { ...others, folder, dataDir };
  const folders = [path.dirname(folder), folder, locked, deep];
  const modes = () => folders.map((folder) => statSync(folder).mode);
  const before = modes();
  const stopped = await launchGateway(t, { home });
  await until(() => existsSync(dataDir), 'the start has begun');
  assert.deepEqual(await stopped.end('SIGINT'), { code: 0, signal: null });
  assert.deepEqual(serversOf(home), []);
  const gateway = await startGatewayProcess(t, { home });
  assert.equal((await gateway.get('/key')).status, 200);
  assert.deepEqual(await gateway.end('SIGTERM'), { code: 0, signal: null });
  assert.deepEqual(modes(), before);
  assert.deepEqual(serversOf(home), []);
});

/** GET /generation, once the row is there. */
async function generationOf(gateway: GatewayProcess, id: string | undefined): Promise<Record<string, unknown>> {
  assert.ok(id, 'an answer without X-Generation-Id');
  let row: Record<string, unknown> | undefined;
  for (let tries = 0; row === undefined; tries++) {
    const answer = await gateway.get(`/generation?id=${id}`);
    if (answer.status === 200) row = ((await answer.json()) as { data: Record<string, unknown> }).data;
    else if (tries > 200) assert.fail(`no row for ${id}: ${await answer.text()}`);
  }
  return row;
}
