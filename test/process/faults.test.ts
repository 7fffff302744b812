/** What breaks around a running gateway, and what its users and its books notice of it. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, statfsSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, type TestContext, test } from 'node:test';
import { systemClock as clock } from '../../src/base/clock.ts';
import { silentLog as log } from '../../src/base/log.ts';
import { startEmbedded } from '../../src/storage/embedded.ts';
import { type Answer, type Asking, ask } from '../../src/testing/clients/planned-client.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { embeddedTarget, type Row, readRows, rowsOnce, wholeDatabase } from '../../src/testing/database/rows.ts';
import { INFERENCE_KEY, MANAGEMENT_KEY, UPSTREAM_KEY } from '../../src/testing/gateway/gateway.ts';
import {
  type GatewayProcess,
  gatewayHome,
  launchGateway,
  plannedYaml,
  serversOf,
  startGatewayProcess,
} from '../../src/testing/process/gateway-process.ts';
import { type Plan, PlannedUpstream } from '../../src/testing/upstream/planned-upstream.ts';
import { slowReader } from './slow-reader.ts';

const CLIENTS = 100;

async function plannedUpstream(t: TestContext): Promise<PlannedUpstream> {
  const upstream = await new PlannedUpstream().listen();
  t.after(() => upstream.close());
  return upstream;
}

/** Asks and waits for the end of the answer. */
async function answered(gateway: GatewayProcess, plan: Plan, asking?: Asking): Promise<Answer> {
  const answer = ask(gateway.url, plan, asking);
  await until(() => answer.over, `${plan.tag} has ended`, 60_000);
  return answer;
}

test('a full disk under the journal: 503 before anything is dispatched, running streams are entered, and it passes', async (t) => {
  const home = await gatewayHome(t);
  const journal = path.join(home.dataDir, 'journal');
  mkdirSync(journal, { recursive: true });
  if (!mountTiny(journal)) return t.skip('needs the right to mount a tmpfs');
  home.closers?.push(() => spawnSync('umount', ['-l', journal]));
  const upstream = await plannedUpstream(t);
  const gateway = await startGatewayProcess(t, { home, yaml: plannedYaml(upstream.url) });
  const running = Array.from({ length: 20 }, (_, at) => ask(gateway.url, { tag: `running-${at}`, events: 4, hold: 2 }));
  await until(() => running.every(({ events }) => events.length >= 2), 'twenty streams are half way');

  const filler = path.join(journal, 'filler');
  fill(filler, journal);
  // What fits into the last page of the segment may still be taken.
  let refused: Answer | undefined;
  for (let at = 0; refused === undefined; at++) {
    const answer = await answered(gateway, { tag: `full-${at}` });
    if (answer.status === 503) refused = answer;
    else assert.equal(answer.status, 200, answer.text);
    assert.ok(at < 200, 'never refused');
  }
  const { error } = JSON.parse(refused.text) as { error: { code: number; metadata: { retryable: boolean } } };
  assert.equal(error.metadata.retryable, true);
  assert.ok(!upstream.tags('asked').has(refused.tag), 'nothing unmetered is dispatched');
  upstream.release();
  await until(() => running.every(({ over }) => over), 'the running streams end');
  for (const answer of running) assert.ok(answer.done, answer.text);

  rmSync(filler);
  let again: Answer | undefined;
  for (let at = 0; again?.status !== 200; at++) {
    assert.ok(at < 500, 'does not recover');
    again = await answered(gateway, { tag: `again-${at}` });
  }
  const asked = upstream.tags('asked');
  const rows = await rowsOnce(embeddedTarget(home), asked.size);
  assert.deepEqual(new Set(rows.map(({ tag }) => tag)), asked);
  for (const row of rows) assert.equal(row.output, 11n, row.tag);
  assert.equal(gateway.lines('the journal cannot be written').length, 1);
  assert.equal(gateway.lines('the journal is writable again').length, 1);
  assert.deepEqual(await gateway.end('SIGTERM'), { code: 0, signal: null });
});

test('the database is away: known keys work within their budgets, unknown ones get 503, and every row appears later', async (t) => {
  const home = await gatewayHome(t);
  const settings = { dataFolder: home.dataDir, clock, log };
  let server = await startEmbedded(settings);
  home.closers?.push(() => server.stop());
  const upstream = await plannedUpstream(t);
  const socket = encodeURIComponent(server.socketFolder);
  const gateway = await startGatewayProcess(t, {
    home: { ...home, dataDir: path.join(home.folder, 'gateway') },
    yaml: plannedYaml(upstream.url),
    env: { DATABASE_URL: `postgresql://postgres@/postgres?host=${socket}` },
  });
  // A request costs 1,665,000 nano-dollars, so twelve fit. Its bound is higher.
  const limitNano = 20_000_000n;
  const costly = { promptTokens: 500 };
  const made = await gateway.post('/keys', { name: 'limited', limit: 0.02 }, MANAGEMENT_KEY);
  assert.equal(made.status, 201);
  const { key: limited, data } = (await made.json()) as { key: string; data: { hash: string } };
  const asking = { body: { max_tokens: 11 } };
  assert.equal((await answered(gateway, { tag: 'known' }, asking)).status, 200);
  assert.equal((await answered(gateway, { tag: 'limited', ...costly }, { ...asking, key: limited })).status, 200);

  const under = Array.from({ length: 20 }, (_, at) => ask(gateway.url, { tag: `under-${at}`, events: 3, hold: 1 }));
  await until(() => under.every(({ events }) => events.length > 0), 'streams run');
  await server.stop();
  upstream.release();
  const open = await Promise.all(
    Array.from({ length: 40 }, (_, at) => answered(gateway, { tag: `open-${at}` }, asking)),
  );
  for (const answer of open) assert.equal(answer.status, 200, answer.text);
  const capped = await Promise.all(
    Array.from({ length: 40 }, (_, at) =>
      answered(gateway, { tag: `capped-${at}`, ...costly }, { ...asking, key: limited }),
    ),
  );
  const statuses = new Set(capped.map(({ status }) => status));
  for (const status of statuses) assert.ok([200, 402, 503].includes(status), `status ${status}`);
  assert.ok(!statuses.has(401));
  t.diagnostic(`of 40 requests of the limited key during the outage: ${tally(capped)}`);
  const unknown = await answered(gateway, { tag: 'unknown' }, { key: 'sk-svc-nobody-knows-this-one' });
  assert.equal(unknown.status, 503);
  assert.match(unknown.text, /"retryable":true/);
  await until(() => under.every(({ over }) => over), 'the running streams end');
  for (const answer of under) assert.ok(answer.done);

  server = await startEmbedded(settings);
  const target = { socketFolder: server.socketFolder };
  const asked = upstream.tags('asked');
  const rows = await rowsOnce(target, asked.size);
  assert.deepEqual(new Set(rows.map(({ tag }) => tag)), asked);
  // A refusal may have made the gateway suspect the key's lease; the unknown key is simply unknown again.
  assert.equal((await answered(gateway, { tag: 'unknown-2' }, { key: 'sk-svc-nobody-knows-this-one' })).status, 401);
  const rest = await Promise.all(
    Array.from({ length: 40 }, (_, at) =>
      answered(gateway, { tag: `rest-${at}`, ...costly }, { ...asking, key: limited }),
    ),
  );
  t.diagnostic(`of 40 more after it: ${tally(rest)}`);
  const final = await rowsOnce(target, upstream.tags('asked').size);
  const ofLimited = final.filter(({ tag }) => /^(limited|capped|rest)/.test(tag));
  const spent = ofLimited.reduce((sum, { cost }) => sum + cost, 0n);
  assert.ok(spent <= limitNano, `${spent} of ${limitNano}`);
  assert.ok(spent > limitNano / 2n, `only ${spent} of ${limitNano} could be spent`);
  const shown = (await (await gateway.get(`/keys/${data.hash}`, MANAGEMENT_KEY)).json()) as { data: { usage: number } };
  assert.equal(BigInt(Math.round(shown.data.usage * 1e9)), spent);
  assert.deepEqual(await gateway.end('SIGTERM'), { code: 0, signal: null });
});

test('memory stays flat while a slow reader takes 20 MiB', (t) => slowReader(t, 20));

test('an unreachable database is reported without its password', async (t) => {
  const gateway = await launchGateway(t, {
    home: await gatewayHome(t, false),
    env: { DATABASE_URL: 'postgresql://somebody:canary-password@127.0.0.1:9/base' },
  });
  assert.deepEqual(await gateway.exit, { code: 1, signal: null });
  assert.match(gateway.output, /127\.0\.0\.1:9/);
  assert.ok(!gateway.output.includes('canary-password'));
});

/** Of the tests below, one after the other. What goes wrong in one costs the next nothing. */
const upstream = await new PlannedUpstream().listen();
after(() => upstream.close());
const atEnd = { after: (close: unknown) => after(close as () => Promise<void>) };
const sharedHome = await gatewayHome(atEnd);
let shared: GatewayProcess | undefined;

async function sharedGateway(): Promise<GatewayProcess> {
  const yaml = plannedYaml(upstream.url) as { providers: { models: object[] }[] };
  const [provider] = yaml.providers;
  yaml.providers.push({
    ...provider,
    ...{ id: 'impatient', name: 'Impatient' },
    timeouts: { connect: '5s', first_byte: '20s', idle: '400ms', total: '60s' },
    models: [{ ...provider!.models[0], id: 'test/impatient' }],
  } as never);
  shared ??= await startGatewayProcess(atEnd, { home: sharedHome, yaml, env: { GATEHOUSE_LOG_LEVEL: 'debug' } });
  return shared;
}

test('an upstream that goes silent, breaks off, or answers in the other manner or packed', async () => {
  const gateway = await sharedGateway();
  const asking = { body: { model: 'test/impatient' } };

  for (const [tag, plan] of Object.entries({ silent: { hold: 2 }, cut: { cutAfter: 2 } })) {
    const answer = await answered(gateway, { tag, events: 6, ...plan }, asking);
    assert.equal(answer.content, 'word word ', tag);
    assert.equal(answer.errors.length, 1, tag);
    assert.ok(answer.complete && !answer.done, tag);
    const choices = answer.events.flatMap(
      (event) => (event as { choices?: { finish_reason: string }[] }).choices ?? [],
    );
    assert.deepEqual([...new Set(choices.map((choice) => choice.finish_reason))], [null, 'error'], tag);
  }
  const unanswered = await answered(gateway, { tag: 'unanswered', cutAfter: 0 }, asking);
  assert.equal(unanswered.status, 502);
  for (const contrary of [false, true]) {
    for (const gzip of [false, true]) {
      const tag = `${contrary ? 'contrary' : 'as asked'}${gzip ? ', packed' : ''}`;
      const streamed = await answered(gateway, { tag, contrary, gzip }, asking);
      assert.equal(streamed.content, 'word '.repeat(3), tag);
      assert.ok(streamed.done && streamed.errors.length === 0, tag);
      const whole = await answered(gateway, { tag: `${tag}, whole`, contrary, gzip }, { ...asking, stream: false });
      assert.equal(whole.status, 200, whole.text);
      const reply = JSON.parse(whole.text) as {
        choices: { message: { content: string }; finish_reason: string }[];
        usage: { completion_tokens: number };
      };
      assert.equal(reply.choices[0]?.message.content, 'word '.repeat(3), tag);
      assert.equal(reply.choices[0]?.finish_reason, 'stop');
      assert.equal(reply.usage.completion_tokens, 11);
    }
  }
  const rows = await rowsOf(gateway, (tag) => /^(?:silent|cut|unanswered|contrary|as asked)\b/.test(tag), 11);
  assert.equal(rows.length, 11);
  const seen: Record<string, bigint> = { silent: 3n, cut: 3n, unanswered: 0n };
  for (const row of rows) {
    assert.equal(row.estimated, row.tag in seen, row.tag);
    assert.equal(row.output, seen[row.tag] ?? 11n, row.tag);
    // The upstream has read the prompt, whatever came back.
    assert.ok(row.cost > 0n, row.tag);
  }
});

test('100 clients leave at random moments: every upstream call ends, and no row is missing', async (t) => {
  const gateway = await sharedGateway();
  const isOurs = (tag: string) => /^c\d+$/.test(tag);
  const ours = (what: 'asked' | 'left') => new Set([...upstream.tags(what)].filter(isOurs));
  const leftAt = new Map<string, number>();
  const answers: Answer[] = [];
  for (let at = 0; at < CLIENTS; at++) {
    const answer = ask(gateway.url, { tag: `c${at}`, events: 100, gapMs: 30 }, { stream: at % 2 === 0 });
    answers.push(answer);
    setTimeout(() => {
      leftAt.set(answer.tag, performance.now());
      answer.leave();
    }, Math.random() * 800);
    // A new one every few milliseconds: what is measured is the leaving, not a burst.
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  await until(() => answers.every(({ over }) => over), 'all have left');
  await until(() => upstream.open === 0, 'every upstream call has ended');
  const asked = ours('asked');
  assert.deepEqual(ours('left'), asked);
  // Some had left before their request came to the upstream.
  const askedAt = new Map(upstream.log.filter(({ what }) => what === 'asked').map(({ tag, atMs }) => [tag, atMs]));
  const delays = upstream.log
    .filter(({ what, tag }) => what === 'left' && isOurs(tag))
    .map(({ tag, atMs }) => atMs - Math.max(leftAt.get(tag)!, askedAt.get(tag)!))
    .sort((a, b) => a - b);
  const shown = [0.5, 0.99, 1].map((part) => Math.round(delays[Math.ceil(part * delays.length) - 1] ?? 0));
  t.diagnostic(`${asked.size} upstream calls ended after ${shown.join(' / ')} ms (p50 / p99 / longest)`);
  // Some left when their request was journaled and had not arrived yet; they have rows as well.
  const rows = (await settledRows(gateway)).filter(({ tag }) => isOurs(tag));
  assert.equal(new Set(rows.map(({ tag }) => tag)).size, rows.length);
  for (const tag of asked)
    assert.ok(
      rows.some((row) => row.tag === tag),
      `no row for ${tag}`,
    );
  for (const row of rows) assert.ok(row.cancelled && row.estimated, row.tag);
});

test('a killed embedded postgres under load is visible only in the log', async () => {
  const gateway = await sharedGateway();
  const answers: Answer[] = [];
  const wave = (name: string) => {
    for (let at = 0; at < 20; at++) answers.push(ask(gateway.url, { tag: `${name}-${at}`, gapMs: 10 }));
  };
  // A key that the process has not seen yet cannot be known while the database is away.
  const first = ask(gateway.url, { tag: 'first' });
  answers.push(first);
  await until(() => first.over, 'the key is known');
  wave('before');
  const [postmaster = 0] = serversOf(gateway.home).sort((a, b) => a - b);
  process.kill(postmaster, 'SIGKILL');
  wave('at');
  await gateway.logged('the embedded PostgreSQL runs again');
  wave('after');
  await until(() => answers.every(({ over }) => over), 'all have ended', 60_000);
  for (const answer of answers) assert.ok(answer.done, `${answer.tag}: ${answer.status} ${answer.text}`);
  const rows = await rowsOf(gateway, (tag) => /^(?:first|before|at|after)\b/.test(tag), answers.length);
  assert.equal(rows.length, answers.length);
});

test('no response, log line, journal or row contains a key or a credential', async () => {
  const gateway = await sharedGateway();
  const wrong = 'sk-svc-a-key-that-was-mistyped-by-a-customer';
  const made = await gateway.post('/keys', { name: 'made' }, MANAGEMENT_KEY);
  const { key: third } = (await made.json()) as { key: string };
  const asking: [Plan, Asking?][] = [
    [{ tag: 'fine' }],
    [{ tag: 'whole' }, { stream: false }],
    [{ tag: 'third' }, { key: third }],
    [{ tag: 'broken', cutAfter: 1 }],
    [{ tag: 'wrong' }, { key: wrong }],
    [{ tag: 'management' }, { key: MANAGEMENT_KEY }],
    [{ tag: 'bad' }, { body: { temperature: 'hot', authorization: INFERENCE_KEY } }],
    ...[400, 401, 403, 429, 500, 529].flatMap((status): [Plan, Asking?][] => [
      [{ tag: `echo-${status}`, echo: status }],
      [{ tag: `echo-whole-${status}`, echo: status }, { stream: false }],
    ]),
  ];
  let answers = '';
  for (const [plan, how] of asking) answers += (await answered(gateway, plan, how)).text;
  for (const route of ['/key', '/keys', '/models', '/nothing']) {
    answers += await (await gateway.get(route, MANAGEMENT_KEY)).text();
  }
  assert.ok(upstream.headers.some(({ authorization }) => authorization === `Bearer ${UPSTREAM_KEY}`));
  const open = ask(gateway.url, { tag: 'open', hold: 1 });
  await until(() => open.events.length > 0, 'a stream is open');
  await rowsOf(gateway, (tag) => /^(?:fine|whole|third|broken|echo-.*)$/.test(tag), 10);
  const rows = await wholeDatabase(embeddedTarget(gateway.home));
  await gateway.end('SIGKILL');
  const journals = readFolder(path.join(gateway.home.dataDir, 'journal'));
  assert.ok(journals.includes('"open"'), 'the journal was read');
  const places = { answers, rows, journals, log: gateway.output };
  for (const [place, text] of Object.entries(places)) {
    for (const secret of [INFERENCE_KEY, MANAGEMENT_KEY, UPSTREAM_KEY, third, wrong]) {
      const at = text.indexOf(secret);
      assert.equal(at, -1, `in ${place}: ${text.slice(Math.max(0, at - 200), at + 20)}`);
    }
  }
});

/** The rows of these tags, once there are at least `count`. */
function rowsOf({ home }: GatewayProcess, isOurs: (tag: string) => boolean, count: number): Promise<Row[]> {
  const target = embeddedTarget(home);
  return until(
    async () => {
      const rows = (await readRows(target)).filter(({ tag }) => isOurs(tag));
      return rows.length >= count ? rows : undefined;
    },
    `there are ${count} rows`,
    60_000,
  );
}

/** The rows of the gateway's inference key, once nothing is on its way: when their sum is what the key has used. */
async function settledRows(gateway: GatewayProcess): Promise<Row[]> {
  for (let tries = 0; ; tries++) {
    const { data } = (await (await gateway.get('/key')).json()) as { data: { usage: number } };
    const rows = await readRows(embeddedTarget(gateway.home));
    const sum = rows.reduce((total, { cost }) => total + cost, 0n);
    if (BigInt(Math.round(data.usage * 1e9)) === sum) return rows;
    if (tries > 100) assert.fail(`the rows cost ${sum}, the key has used ${data.usage}`);
  }
}

function tally(answers: Answer[]): string {
  const counts = new Map<number, number>();
  for (const { status } of answers) counts.set(status, (counts.get(status) ?? 0) + 1);
  return [...counts].map(([status, count]) => `${count} x ${status}`).join(', ');
}

function mountTiny(folder: string): boolean {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return false;
  return spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=3m,mode=0700', 'tmpfs', folder]).status === 0;
}

/** Leaves no byte free. */
function fill(file: string, folder: string): void {
  const { bavail, bsize } = statfsSync(folder);
  writeFileSync(file, Buffer.alloc(bavail * bsize));
}

function readFolder(folder: string): string {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => path.join(folder, name));
  return names
    .filter((name) => statSync(name).isFile())
    .map((name) => readFileSync(name, 'latin1'))
    .join('\n');
}
