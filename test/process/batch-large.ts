/**
 * A large batch against an upstream that counts: killed while it arrives and while it runs, and compared afterwards item by
 * item with what the upstream saw.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import type { TestContext } from 'node:test';
import type { Target } from '../../src/storage/connection.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { databaseUrl, emptyDatabase } from '../../src/testing/database/database.ts';
import { embeddedTarget, readDays, rowsOnce } from '../../src/testing/database/rows.ts';
import { INFERENCE_KEY } from '../../src/testing/gateway/gateway.ts';
import {
  type GatewayProcess,
  gatewayHome,
  plannedYaml,
  startGatewayProcess,
} from '../../src/testing/process/gateway-process.ts';
import { isFinal, type Json } from '../batches/batches-client.ts';

/** Answers with the tag of each request, and with token counts that follow from the tag. */
export class CountingUpstream {
  url = '';
  /** How often each tag was asked. */
  readonly asked = new Map<string, number>();
  total = 0;
  readonly #server = http.createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('error', () => {});
    response.on('error', () => {});
    request.on('end', () => {
      const { messages } = JSON.parse(Buffer.concat(chunks).toString()) as { messages: [{ content: string }] };
      const [tag = ''] = messages[0].content.split(' ', 1);
      this.asked.set(tag, (this.asked.get(tag) ?? 0) + 1);
      this.total += 1;
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(replyTo(tag)));
    });
  });

  async listen(t: TestContext): Promise<this> {
    this.#server.keepAliveTimeout = 60_000;
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    t.after(() => {
      this.#server.close();
      this.#server.closeAllConnections();
    });
    return this;
  }
}

export const tagOf = (n: number) => `item-${n}`;
export const promptTokensOf = (tag: string) => 5 + (Number(tag.slice('item-'.length)) % 50);
export const COMPLETION_TOKENS = 3;
/** By `PRICING`: 3 and 15 USD per million tokens. */
const costOf = (tag: string) => BigInt(promptTokensOf(tag) * 3_000 + COMPLETION_TOKENS * 15_000);

function replyTo(tag: string): Json {
  const [prompt_tokens, completion_tokens] = [promptTokensOf(tag), COMPLETION_TOKENS];
  return {
    id: `up-${tag}`,
    object: 'chat.completion',
    created: 1,
    model: 'planned',
    choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: tag } }],
    usage: { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens },
  };
}

/** The body of a batch, piece by piece; each item has `itemBytes` in all. */
export function* bodyOf(items: number, itemBytes: number): Generator<Buffer> {
  yield Buffer.from('{"endpoint":"/v1/chat/completions","model":"test/planned","requests":[');
  let piece = '';
  for (let n = 0; n < items; n++) {
    const tag = tagOf(n);
    const item = (content: string) =>
      JSON.stringify({ custom_id: tag, body: { user: tag, max_tokens: 4, messages: [{ role: 'user', content }] } });
    piece += (n === 0 ? '' : ',') + item(`${tag} ${'x'.repeat(itemBytes - item('').length - tag.length - 2)}`);
    if (piece.length < 256 * 1024) continue;
    yield Buffer.from(piece);
    piece = '';
  }
  yield Buffer.from(`${piece}]}`);
}

/** Sends the body of a batch; undefined if the connection broke. */
export async function submit(
  gateway: GatewayProcess,
  body: Iterable<Buffer> | AsyncIterable<Buffer>,
  headers: Record<string, string> = {},
): Promise<{ status: number; body: Json } | undefined> {
  try {
    const response = await fetch(`${gateway.api}/batches`, {
      method: 'POST',
      headers: { authorization: `Bearer ${INFERENCE_KEY}`, 'content-type': 'application/json', ...headers },
      body: Readable.toWeb(Readable.from(body)) as ReadableStream,
      duplex: 'half',
    } as RequestInit);
    return { status: response.status, body: await response.json() };
  } catch {
    return undefined;
  }
}

/** The most memory that a live process has ever had, in MiB. */
export function peakMemoryOf(pid: number): number {
  const [, kibibytes = 'NaN'] = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kibibytes) / 1024;
}

/** Reads the results line by line, and checks that there is one for each item, in order. Returns the generations. */
async function checkResults(gateway: GatewayProcess, id: string, items: number): Promise<Set<string>> {
  const response = await gateway.get(`/batches/${id}/results`);
  assert.equal(response.status, 200);
  const lines = createInterface({ input: Readable.fromWeb(response.body as never), crlfDelay: Infinity });
  const generations = new Set<string>();
  let n = 0;
  for await (const line of lines) {
    const { custom_id: tag, response: answer, error } = JSON.parse(line) as Json;
    if (tag !== tagOf(n) || error !== null || answer.status_code !== 200) assert.fail(`line ${n}: ${line}`);
    if (answer.body.choices[0].message.content !== tag) assert.fail(`line ${n} has the answer of another: ${line}`);
    generations.add(answer.request_id);
    n += 1;
  }
  assert.equal(n, items);
  assert.equal(generations.size, items, 'each result has a generation of its own');
  return generations;
}

/** Compares the ledger with what the upstream saw: a row for each call, and the price of each. Returns the cost of all. */
async function checkLedger(target: Target, upstream: CountingUpstream): Promise<LedgerCheck> {
  const rows = await rowsOnce(target, upstream.total);
  const seen = new Map<string, number>();
  const check = { rows: rows.length, twice: 0, estimated: 0, unconfirmed: 0, unsent: 0, costNano: 0n };
  for (const { tag, estimated, unconfirmed, cost } of rows) {
    seen.set(tag, (seen.get(tag) ?? 0) + 1);
    check.costNano += cost;
    if (estimated) check.estimated += 1;
    if (unconfirmed) check.unconfirmed += 1;
    if (!estimated && !unconfirmed) assert.equal(cost, costOf(tag), tag);
  }
  for (const [tag, calls] of upstream.asked) {
    const rowsOfTag = seen.get(tag) ?? 0;
    assert.ok(rowsOfTag >= calls, `${tag}: ${calls} calls, ${rowsOfTag} rows`);
    if (calls > 1) check.twice += 1;
  }
  check.unsent = rows.length - upstream.total;
  assert.ok(check.unsent <= check.unconfirmed, JSON.stringify({ ...check, costNano: null }));
  const days = await readDays(target);
  assert.deepEqual([days.requests, days.cost], [BigInt(rows.length), check.costNano]);
  return check;
}

interface LedgerCheck {
  rows: number;
  /** Items that the upstream was asked more than once. */
  twice: number;
  estimated: number;
  /** Rows of calls that ran when the process died: their bound is charged. */
  unconfirmed: number;
  /** Rows of calls that the upstream never saw, because the process died between the journal and the socket. */
  unsent: number;
  costNano: bigint;
}

interface LargeBatch {
  items: number;
  itemBytes: number;
  /** MiB that no process may ever use. */
  memory: number;
}

/** A promise of the guide. */
const TAKEOVER_MS = 15_000;
const PATIENCE_MS = 1_800_000;

/** Runs a batch that is killed once while it arrives and twice while it runs. */
export async function largeBatch(t: TestContext, { items, itemBytes, memory }: LargeBatch): Promise<void> {
  const upstream = await new CountingUpstream().listen(t);
  const home = await gatewayHome(t);
  const yaml = plannedYaml(upstream.url);
  let gateway = await startGatewayProcess(t, { home, yaml });
  const told: Record<string, number> = {};
  const note = (name: string, value: number) => {
    told[name] = Math.round(value);
  };
  const checkMemory = (when: string) => {
    const peak = peakMemoryOf(gateway.pid);
    note(`MiB ${when}`, peak);
    assert.ok(peak < memory, `${peak} MiB ${when}`);
  };
  const kill = async (when: string) => {
    checkMemory(when);
    await gateway.end('SIGKILL');
  };

  async function* cut(): AsyncGenerator<Buffer> {
    let sent = 0;
    for (const piece of bodyOf(items, itemBytes)) {
      yield piece;
      sent += piece.length;
      if (sent < (items * itemBytes) / 2) continue;
      await kill('killed while it arrives');
      return;
    }
  }
  assert.equal(await submit(gateway, cut()), undefined);
  gateway = await startGatewayProcess(t, { home });
  assert.deepEqual(((await (await gateway.get('/batches')).json()) as Json).data, [], 'half a batch is none');

  const startedAt = performance.now();
  const answer = await submit(gateway, bodyOf(items, itemBytes));
  note('ms to take it in', performance.now() - startedAt);
  checkMemory('taken in');
  assert.equal(answer?.status, 202, JSON.stringify(answer?.body));
  const { id } = answer.body as { id: string };
  const shown = async () => (await (await gateway.get(`/batches?limit=1`)).json()) as Json;
  const completed = async () => (await shown()).data[0].request_counts.completed as number;

  const ranFrom = performance.now();
  for (const share of [0.3, 0.6]) {
    await until(async () => (await completed()) >= items * share, `${share} of the items`, PATIENCE_MS);
    await kill(`killed at ${share}`);
    const asked = upstream.total;
    const killedAt = performance.now();
    gateway = await startGatewayProcess(t, { home });
    await until(() => upstream.total > asked, 'the batch goes on', PATIENCE_MS);
    const ms = performance.now() - killedAt;
    note(`ms until it goes on at ${share}`, ms);
    assert.ok(ms < TAKEOVER_MS, `${ms} ms`);
  }
  const states = new Map<string, number>();
  const batch = await until(
    async () => {
      const [found] = (await shown()).data;
      if (!states.has(found.status)) states.set(found.status, performance.now());
      return isFinal(found.status) && found;
    },
    'the batch ends',
    PATIENCE_MS,
  );
  const ranMs = performance.now() - ranFrom;
  note('s to run', ranMs / 1000);
  note('items/s', items / (ranMs / 1000));
  const finalizing = states.get('finalizing');
  if (finalizing !== undefined) note('ms to conclude', states.get('completed')! - finalizing);
  assert.deepEqual([batch.status, batch.request_counts], ['completed', { total: items, completed: items, failed: 0 }]);
  checkMemory('run');

  const readFrom = performance.now();
  const generations = await checkResults(gateway, id, items);
  note('ms to read the results', performance.now() - readFrom);
  checkMemory('results read');
  const { costNano, ...ledger } = await checkLedger(embeddedTarget(gateway.home), upstream);
  assert.ok(ledger.rows >= generations.size);
  const expected = Array.from({ length: items }, (_, n) => tagOf(n));
  assert.equal(
    batch.usage.prompt_tokens,
    expected.reduce((sum, tag) => sum + promptTokensOf(tag), 0),
  );
  assert.equal(batch.usage.completion_tokens, items * COMPLETION_TOKENS);
  const cost = expected.reduce((sum, tag) => sum + costOf(tag), 0n);
  assert.equal(BigInt(Math.round(batch.usage.cost * 1e9)), cost);
  assert.ok(costNano >= cost, 'what ran twice is paid twice');
  t.diagnostic(JSON.stringify({ ...told, ...ledger }));
}

/** Two processes with one database share a batch; one of them is killed in the middle. */
export async function sharedBatch(t: TestContext, items: number): Promise<void> {
  const upstream = await new CountingUpstream().listen(t);
  const target = await emptyDatabase(t);
  const yaml = plannedYaml(upstream.url);
  const env = { DATABASE_URL: databaseUrl(target) };
  const start = async () => startGatewayProcess(t, { home: await gatewayHome(t, false), env, yaml });
  const [first, second] = [await start(), await start()];
  const answer = await submit(first, bodyOf(items, 1_000));
  assert.equal(answer?.status, 202, JSON.stringify(answer?.body));
  const { id } = answer.body as { id: string };
  const shown = async () => ((await (await first.get('/batches?limit=1')).json()) as Json).data[0];
  await until(async () => (await shown()).request_counts.completed >= items / 2, 'half of the items', PATIENCE_MS);
  assert.equal(upstream.asked.size, upstream.total, 'no item ran in both');
  await second.end('SIGKILL');
  const batch = await until(async () => isFinal((await shown()).status) && shown(), 'the batch ends', PATIENCE_MS);
  assert.deepEqual([batch.status, batch.request_counts], ['completed', { total: items, completed: items, failed: 0 }]);
  await checkResults(first, id, items);
  await startGatewayProcess(t, { home: second.home, env });
  const { costNano, ...ledger } = await checkLedger(target, upstream);
  t.diagnostic(JSON.stringify({ ...ledger, cost: Number(costNano) / 1e9 }));
}
