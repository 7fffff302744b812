/**
 * Events of the client, the upstream and a shutdown before the end of an event-loop turn, when the journal is written
 * (`spend/group-commit.ts`).
 */
import assert from 'node:assert/strict';
import * as nodeFiles from 'node:fs';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { generationId } from '../../src/base/ids.ts';
import type { CachedAnswer, ResponseCache } from '../../src/cache/index.ts';
import type { WholeBody } from '../../src/formats/direct/index.ts';
import { RequestContext } from '../../src/inference/context.ts';
import { serveInContext } from '../../src/inference/serve.ts';
import type { UpstreamReceiver } from '../../src/providers/index.ts';
import { type Generation, spendMigrations } from '../../src/spend/index.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { freshDatabase } from '../../src/testing/database/database.ts';
import { SpendProcess } from '../../src/testing/database/spend-process.ts';
import { chatPipeline, MemorySink } from '../../src/testing/laws/pipeline.ts';
import { NOON } from '../../src/testing/laws/spend-samples.ts';

/** The key's budget per concurrent request: enough for one at its bound, not for two. */
const LIMIT_NANO = 70_000_000n;
const WHOLE = JSON.stringify({
  id: 'up-1',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'good' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12 },
});
const event = (choice: object) =>
  `data: ${JSON.stringify({ id: 'up-1', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, finish_reason: null, delta: {}, ...choice }] })}\n\n`;
const FIRST = event({ delta: { role: 'assistant', content: 'go' } });
const PIECE = event({ delta: { content: 'o' } });
const LAST = `${event({ delta: { content: 'od' } })}${event({ finish_reason: 'stop' })}data: [DONE]\n\n`;

interface Call {
  receiver: UpstreamReceiver;
  aborted: boolean;
}

/** A client with a request, and what the listeners of its answer receive. */
interface Asked {
  id: string;
  sink: MemorySink;
  heard: string;
  ended: Generation[];
  over: boolean;
  done: Promise<void>;
}

/** Throws where an answer is ended. */
class Broken extends MemorySink {
  override reply(status: number, headers: Record<string, string>, body: string): void {
    if (status === 200) throw new Error('a bug');
    super.reply(status, headers, body);
  }

  override write(text: string): boolean {
    if (text.includes('[DONE]')) throw new Error('a bug');
    return super.write(text);
  }
}

async function setting(t: TestContext, { atOnce = 1, memoryRows = 100 } = {}) {
  const { database, target } = await freshDatabase(t, { migrations: spendMigrations });
  const dataDir = mkdtempSync(join(tmpdir(), 'end-of-turn-'));
  const turn: (() => void)[] = [];
  const disk = { full: false };
  const files = {
    ...nodeFiles,
    writeSync(descriptor: number, bytes: Uint8Array, offset: number, length: number, position: number): number {
      if (disk.full) throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
      return nodeFiles.writeSync(descriptor, bytes, offset, length, position);
    },
  };
  const options = { endOfTurn: (run: () => void) => void turn.push(run), journal: { files }, ledger: { memoryRows } };
  const process = await SpendProcess.start({ database, target, dataDir, now: () => NOON, options });
  t.after(async () => {
    await process.close();
    rmSync(dataDir, { recursive: true, force: true });
  });
  const { spend } = process;
  let begun = 0;
  const begin = spend.begin.bind(spend);
  spend.begin = (...given) => {
    begun += 1;
    return begin(...given);
  };
  const calls: Call[] = [];
  const transport = {
    send(_request: unknown, receiver: UpstreamReceiver) {
      const call = { receiver, aborted: false };
      calls.push(call);
      return {
        pause() {},
        resume() {},
        abort() {
          call.aborted = true;
        },
      };
    },
    async close() {},
  };
  const { parts, request } = chatPipeline(transport, spend);
  parts.endOfTurn = (run) => void turn.push(run);
  // A slot that is not released blocks the next request.
  const [endpoint] = parts.catalog().find('test/model')!.endpoints;
  Object.assign(endpoint!.provider, { maxConcurrency: atOnce });

  /** Resolves when the intent waits for the end of the turn, or the request is over. */
  async function ask(stream = false, sink = new MemorySink()): Promise<Asked> {
    const before = begun;
    const asked: Asked = { id: generationId(NOON), sink, heard: '', ended: [], over: false, done: Promise.resolve() };
    const listener = {
      wrote(piece: WholeBody) {
        asked.heard += String(piece);
      },
      ended({ row }: { row: Generation }) {
        asked.ended.push(row);
      },
    };
    const told = request(asked.id, stream);
    const caller = { ...told.caller, limitNano: LIMIT_NANO * BigInt(atOnce) };
    const about =
      parts.cached === undefined ? told.about : { ...told.about, cache: { ttlSeconds: 300, refresh: false } };
    const context = new RequestContext({ ...told, caller, about }, sink, parts.clock);
    context.addListener(listener);
    asked.done = serveInContext(context, parts).finally(() => {
      asked.over = true;
    });
    await until(() => begun > before || asked.over, 'an intent waits');
    return asked;
  }

  async function endTurn(): Promise<void> {
    for (const run of turn.splice(0)) run();
    await new Promise((resolve) => setImmediate(resolve));
  }

  /** Earlier requests hold nothing: neither budget nor a slot at the provider. */
  async function servesAnother(): Promise<void> {
    const before = calls.length;
    const { sink, done } = await ask();
    await endTurn();
    assert.equal(calls.length, before + 1, sink.text);
    answerWhole(calls.at(-1)!);
    await endTurn();
    await done;
    assert.equal(sink.status, 200);
  }

  async function rows(): Promise<{ id: string; status: number | null; cancelled: boolean }[]> {
    await spend.flush();
    return database.query('SELECT id, status, cancelled FROM generations ORDER BY id');
  }

  /** From now on every request is served this cached answer. */
  function keep(body: string): void {
    const found: CachedAnswer = {
      ...{ key: Buffer.alloc(32), sourceId: 'gen-kept', createdAt: NOON, expiresAt: NOON + 300_000 },
      ...{ model: 'test/model', endpointId: null, providerName: null, finishReason: null, nativeFinishReason: null },
      body: Buffer.from(body),
    };
    const answers = { on: true, find: async () => found } as unknown as ResponseCache;
    parts.cached = { answers, headerPrefix: 'X-Svc-' };
  }

  return { parts, calls, disk, keep, ask, endTurn, servesAnother, rows };
}

function answerWhole({ receiver }: Call): void {
  receiver.head(200, { 'content-type': 'application/json' });
  receiver.data(Buffer.from(WHOLE));
  receiver.end();
}

function beginStream({ receiver }: Call): void {
  receiver.head(200, { 'content-type': 'text/event-stream' });
  receiver.data(Buffer.from(FIRST));
}

test('a client that leaves before its intent is written causes no upstream call, no row and no hold', async (t) => {
  const { calls, ask, endTurn, servesAnother, rows } = await setting(t);
  const left = await ask();
  assert.equal(calls.length, 0, 'nothing is dispatched before the end of the turn');
  left.sink.leave();
  await endTurn();
  await left.done;
  assert.deepEqual([calls.length, left.sink.status, await rows()], [0, 0, []]);
  await servesAnother();
});

test('a shutdown before the intent is written is reported once, and nothing is dispatched', async (t) => {
  const { parts, calls, ask, endTurn, servesAnother, rows } = await setting(t);
  const asked = await ask();
  parts.inFlight.interrupt();
  assert.equal(asked.sink.status, 503);
  await endTurn();
  await asked.done;
  assert.deepEqual([calls.length, await rows()], [0, []]);
  await servesAnother();
});

test('an intent that cannot be written is 503, and nothing of it is held', async (t) => {
  const { calls, disk, ask, endTurn, rows } = await setting(t);
  disk.full = true;
  const refused = await ask();
  await endTurn();
  await refused.done;
  assert.deepEqual([refused.sink.status, calls.length, await rows()], [503, 0, []]);
  disk.full = false;
  // The journal retries every 100 ms.
  let again = refused;
  for (; again.sink.status === 503; await endTurn()) again = await ask();
  answerWhole(calls[0]!);
  await endTurn();
  assert.equal(again.sink.status, 200);
});

test('a client that leaves after the row is settled gets no more, and the whole answer is cached', async (t) => {
  const { calls, ask, endTurn, servesAnother, rows } = await setting(t);
  const whole = await ask();
  await endTurn();
  answerWhole(calls[0]!);
  assert.equal(whole.sink.status, 0, 'no answer before its row');
  whole.sink.leave();
  await endTurn();
  await whole.done;
  const streamed = await ask(true);
  await endTurn();
  beginStream(calls[1]!);
  calls[1]!.receiver.data(Buffer.from(LAST));
  streamed.sink.leave();
  await endTurn();
  await streamed.done;
  assert.match(whole.heard, /"content":"good"/);
  assert.match(streamed.heard, /"go".*"od".*\[DONE\]\n\n$/s);
  assert.ok(!streamed.sink.text.includes('[DONE]'));
  for (const { ended } of [whole, streamed]) {
    assert.deepEqual(
      ended.map(({ status, cancelled }) => [status, cancelled]),
      [[200, false]],
    );
  }
  assert.deepEqual(
    (await rows()).map(({ status, cancelled }) => [status, cancelled]),
    [
      [200, false],
      [200, false],
    ],
  );
  await servesAnother();
});

test('a client that leaves just before the end has one row that says so, and the answer is not cached', async (t) => {
  const { calls, ask, endTurn, servesAnother, rows } = await setting(t);
  const asked = await ask(true);
  await endTurn();
  beginStream(calls[0]!);
  await endTurn();
  asked.sink.leave();
  assert.ok(calls[0]!.aborted, 'the upstream is aborted at once');
  calls[0]!.receiver.data(Buffer.from(LAST));
  await endTurn();
  await asked.done;
  assert.deepEqual(
    asked.ended.map(({ cancelled }) => cancelled),
    [true],
  );
  assert.deepEqual(await rows(), [{ id: asked.id, status: 200, cancelled: true }]);
  await servesAnother();
});

test('a stream begins at once, and its output within a turn is sent at the end of the turn as one piece', async (t) => {
  const { calls, ask, endTurn, rows } = await setting(t, { atOnce: 2 });
  const [stays, leaves] = [await ask(true), await ask(true)];
  await endTurn();
  for (const call of calls) {
    beginStream(call);
    call.receiver.data(Buffer.from(PIECE));
    call.receiver.data(Buffer.from(PIECE));
  }
  const pieces = ({ sink }: Asked) => sink.text.match(/"content":"[^"]+"/g)?.length;
  assert.deepEqual([pieces(stays), pieces(leaves)], [1, 1]);
  leaves.sink.leave();
  await endTurn();
  assert.deepEqual([pieces(stays), pieces(leaves)], [3, 1]);
  assert.equal(stays.heard, stays.sink.text);
  calls[0]!.receiver.data(Buffer.from(LAST));
  await endTurn();
  await Promise.all([stays.done, leaves.done]);
  assert.ok(stays.sink.ended);
  assert.deepEqual(
    new Map((await rows()).map(({ id, status, cancelled }) => [id, { status, cancelled }])),
    new Map([
      [stays.id, { status: 200, cancelled: false }],
      [leaves.id, { status: 200, cancelled: true }],
    ]),
  );
});

test('a shutdown between the settled row and the answer changes neither', async (t) => {
  const { parts, calls, ask, endTurn, rows } = await setting(t);
  const asked = await ask();
  await endTurn();
  answerWhole(calls[0]!);
  parts.inFlight.interrupt();
  assert.equal(asked.sink.status, 0);
  await endTurn();
  await asked.done;
  assert.equal(asked.sink.status, 200);
  assert.match(asked.sink.text, /"good"/);
  assert.deepEqual(await rows(), [{ id: asked.id, status: 200, cancelled: false }]);
});

test('a shutdown during a stream is reported after its row, and no unwritten intent is dispatched', async (t) => {
  // Without free memory: that must not write the intents of other requests either.
  const { parts, calls, ask, endTurn, rows } = await setting(t, { atOnce: 2, memoryRows: 0 });
  const asked = await ask(true);
  await endTurn();
  beginStream(calls[0]!);
  const late = await ask();
  parts.inFlight.interrupt();
  assert.ok(calls[0]!.aborted);
  assert.ok(!asked.sink.ended, 'nothing ends before its row');
  await endTurn();
  await Promise.all([asked.done, late.done]);
  assert.match(asked.sink.text, /shutting down/);
  assert.ok(asked.sink.ended && late.sink.ended);
  assert.deepEqual([calls.length, (await rows()).map(({ id }) => id)], [1, [asked.id]]);
});

test('an answer that cannot be written to its client ends the request with an error, and its row stays', async (t) => {
  const { calls, ask, endTurn, servesAnother, rows } = await setting(t);
  const asked = await ask(false, new Broken());
  await endTurn();
  answerWhole(calls[0]!);
  await endTurn();
  assert.ok(asked.over);
  assert.equal(asked.sink.status, 500);
  assert.deepEqual(await rows(), [{ id: asked.id, status: 200, cancelled: false }]);
  await servesAnother();
});

test('if the end of a stream cannot be written, the exchange cuts the connection', async (t) => {
  const { calls, ask, endTurn, rows } = await setting(t);
  const asked = await ask(true, new Broken());
  await endTurn();
  beginStream(calls[0]!);
  calls[0]!.receiver.data(Buffer.from(LAST));
  const rejected = assert.rejects(asked.done);
  await endTurn();
  await rejected;
  assert.deepEqual(await rows(), [{ id: asked.id, status: 200, cancelled: false }]);
});

test('a piece of a stream that cannot be written ends the call, and its row has what was seen', async (t) => {
  const { calls, ask, endTurn, rows } = await setting(t);
  const asked = await ask(true, new Broken());
  await endTurn();
  beginStream(calls[0]!);
  await endTurn();
  calls[0]!.receiver.data(Buffer.from(event({ delta: { content: 'about [DONE]' } })));
  await endTurn();
  assert.ok(calls[0]!.aborted);
  await endTurn();
  await asked.done;
  assert.match(asked.sink.text, /could not be read/);
  assert.ok(asked.sink.ended);
  assert.deepEqual(await rows(), [{ id: asked.id, status: 200, cancelled: false }]);
});

test('a cached answer is sent after its row: a client that leaves earlier has no row', async (t) => {
  const { parts, keep, calls, ask, endTurn, rows } = await setting(t);
  keep(WHOLE);
  const early = await ask();
  early.sink.leave();
  const stopped = await ask();
  parts.inFlight.interrupt();
  assert.equal(stopped.sink.status, 503);
  await endTurn();
  await Promise.all([early.done, stopped.done]);
  assert.deepEqual(await rows(), []);

  const given = await ask();
  const late = await ask();
  await endTurn();
  assert.equal(given.sink.status, 0, 'no answer before its row');
  late.sink.leave();
  parts.inFlight.interrupt();
  await endTurn();
  await Promise.all([given.done, late.done]);
  assert.deepEqual([given.sink.status, late.sink.status, calls.length], [200, 0, 0]);
  assert.match(given.sink.text, /"good"/);
  assert.deepEqual(
    await rows(),
    [given.id, late.id].sort().map((id) => ({ id, status: 200, cancelled: false })),
  );
});

test('a cached answer that cannot be written to its client ends with an error, and its row stays', async (t) => {
  const { keep, ask, endTurn, rows } = await setting(t);
  keep(WHOLE);
  const asked = await ask(false, new Broken());
  await endTurn();
  await endTurn();
  assert.ok(asked.over);
  assert.equal(asked.sink.status, 500);
  assert.deepEqual(await rows(), [{ id: asked.id, status: 200, cancelled: false }]);
});
