/** The response cache where something is in its way: other processes, a slow database, full tables, slow readers, the end. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { until } from '../../src/testing/clock/clock.ts';
import { connectOnce } from '../../src/testing/database/database.ts';
import {
  type Gateway,
  type GatewayOptions,
  INFERENCE_KEY,
  MANAGEMENT_KEY,
  startGateway,
} from '../../src/testing/gateway/gateway.ts';
import { answerOf, chatEvents, streamOf } from '../../src/testing/upstream/answers.ts';

const BODY = { model: 'test/chat', messages: [{ role: 'user', content: 'hi' }] };

const start = (t: TestContext, options: GatewayOptions = {}) =>
  startGateway(t, { providers: { chat: {} }, ...options });

async function post(gateway: Gateway, body: object = BODY) {
  const response = await gateway.post('/chat/completions', body, { 'x-svc-cache': 'true' });
  const text = await response.text();
  return {
    status: response.status,
    text,
    cache: response.headers.get('x-svc-cache-status'),
    headers: response.headers,
  };
}

const kept = async (t: TestContext, gateway: Gateway) => {
  const client = await connectOnce(t, gateway.target);
  return async () => {
    const { rows } = await client.query<{ count: number; size: number }>(
      'select count(*)::int as count, coalesce(sum(size), 0)::int as size from cached_answers',
    );
    return rows[0]!;
  };
};

test('what one process has answered another gives again, also after the first has ended', async (t) => {
  const first = await start(t);
  const second = await start(t, { target: first.target });
  first.upstream.script('chat', [answerOf('chat', false, { text: 'from the first' })]);
  assert.equal((await post(first)).cache, 'MISS');
  const count = await kept(t, first);
  await until(async () => (await count()).count === 1, 'the answer is written');
  const given = await post(second);
  assert.deepEqual([given.cache, given.text.includes('from the first')], ['HIT', true]);

  first.upstream.script('chat', [answerOf('chat', false, { text: 'the last word' })]);
  assert.equal((await post(first, { ...BODY, seed: 1 })).cache, 'MISS');
  await first.close();
  assert.match((await post(second, { ...BODY, seed: 1 })).text, /the last word/);
  assert.equal(second.upstream.requests('chat').length, 0);
});

test('a database that does not answer is a miss after a second, and an answer that it cannot take is let go', async (t) => {
  const gateway = await start(t);
  const locker = await connectOnce(t, gateway.target);
  await locker.query('begin; lock table cached_answers in access exclusive mode');
  gateway.upstream.script('chat', [{ ...answerOf('chat', false, { text: 'anyway' }), repeat: true }]);
  const answers = Promise.all(Array.from({ length: 20 }, (_, seed) => post(gateway, { ...BODY, seed })));
  const watcher = await connectOnce(t, gateway.target);
  const waiting = async () => {
    const { rows } = await watcher.query("select 1 from pg_stat_activity where wait_event_type = 'Lock'");
    return rows.length;
  };
  await until(async () => (await waiting()) === 1, 'a look-up waits');
  // Whoever does not use the cache notices nothing, and no more than one connection waits for the many.
  const other = await gateway.post('/chat/completions', BODY);
  assert.equal(other.status, 200);
  await other.arrayBuffer();
  await until(async () => {
    gateway.clock.jump(1_001);
    return gateway.upstream.requests('chat').length === 21;
  }, 'all are asked for');
  for (const { status, cache } of await answers) assert.deepEqual([status, cache], [200, 'MISS']);
  assert.ok((await waiting()) <= 2);
  await locker.query('rollback');
  assert.equal((await post(gateway, { ...BODY, seed: 1 })).cache, 'HIT');
});

test('an answer past the limit is given and not kept, and all together stay below theirs, the youngest staying', async (t) => {
  const limits = { response_cache_bytes: 40_000, response_cache_answer_bytes: 10_000 };
  const gateway = await start(t, { yaml: { limits } });
  const count = await kept(t, gateway);
  gateway.upstream.script('chat', [answerOf('chat', false, { text: 'x'.repeat(10_000) })]);
  assert.equal((await post(gateway)).status, 200);
  gateway.upstream.script('chat', [{ ...answerOf('chat', false, { text: 'y'.repeat(4_000) }), repeat: true }]);
  for (let seed = 0; seed < 15; seed += 1) {
    assert.equal((await post(gateway, { ...BODY, seed })).cache, 'MISS');
    gateway.clock.jump(1);
  }
  await until(async () => (await post(gateway, { ...BODY, seed: 14 })).cache === 'HIT', 'the last is written');
  gateway.clock.jump(60_001);
  await until(async () => {
    const { size, count: rows } = await count();
    return rows >= 5 && size <= 40_000;
  }, 'room is made');
  assert.equal((await post(gateway, { ...BODY, seed: 14 })).cache, 'HIT');
  assert.equal((await post(gateway)).cache, 'MISS');
  gateway.clock.jump(86_400_000);
  await until(async () => {
    gateway.clock.jump(60_001);
    return (await count()).count === 0;
  }, 'expired answers are removed');
});

test('without room for any answer there is no cache', async (t) => {
  const gateway = await start(t, { yaml: { limits: { response_cache_bytes: 0 } } });
  gateway.upstream.script('chat', [{ ...answerOf('chat', false, { text: 'anew' }), repeat: true }]);
  assert.deepEqual([(await post(gateway)).cache, (await post(gateway)).cache], [null, null]);
  assert.equal(gateway.upstream.requests('chat').length, 2);
});

/** A stream of some megabytes that is in the cache; larger than what sockets hold. */
async function longStream(t: TestContext): Promise<{ gateway: Gateway; body: object; text: string }> {
  const gateway = await start(t, { yaml: { limits: { response_cache_answer_bytes: 32_000_000, drain: '1ms' } } });
  const chunk = JSON.stringify({
    id: 'up',
    choices: [{ index: 0, delta: { content: 'z'.repeat(16_000) }, finish_reason: null }],
  });
  const events = chatEvents({ text: 'end' });
  const pieces = Array.from({ length: 800 }, () => `data: ${chunk}\n\n`);
  gateway.upstream.script('chat', [streamOf([events[0]!, ...pieces, ...events.slice(1)])]);
  const body = { ...BODY, stream: true };
  const { text, cache } = await post(gateway, body);
  assert.equal(cache, 'MISS');
  return { gateway, body, text };
}

async function startReading(gateway: Gateway, body: object) {
  const abort = new AbortController();
  const response = await fetch(`${gateway.api}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${INFERENCE_KEY}`, 'content-type': 'application/json', 'x-svc-cache': 'true' },
    body: JSON.stringify(body),
    signal: abort.signal,
  });
  assert.equal(response.headers.get('x-svc-cache-status'), 'HIT');
  const reader = response.body!.getReader();
  await reader.read();
  return { abort, reader, id: response.headers.get('x-generation-id')! };
}

async function row(gateway: Gateway, id: string): Promise<Record<string, unknown>> {
  const response = await gateway.get(`/generation?id=${id}`, MANAGEMENT_KEY);
  return ((await response.json()) as { data: Record<string, unknown> }).data ?? {};
}

test('a long stream is given as fast as it is read, and one that is left costs nothing and says so', async (t) => {
  const { gateway, body, text } = await longStream(t);
  const { abort, id } = await startReading(gateway, body);
  abort.abort();
  await until(async () => (await row(gateway, id))['cancelled'] === true, 'the row is entered');
  assert.equal((await row(gateway, id))['total_cost'], 0);
  const whole = await post(gateway, body);
  assert.equal(whole.cache, 'HIT');
  assert.equal(whole.text.split('\n\n').length, text.split('\n\n').length);
  assert.ok(whole.text.endsWith('data: [DONE]\n\n'));
});

test('a stream that is still being given when the gateway ends is ended in words, not cut or closed as if whole', async (t) => {
  const { gateway, body } = await longStream(t);
  const { reader } = await startReading(gateway, body);
  const closing = gateway.close();
  gateway.clock.jump(10);
  let text = '';
  const decoder = new TextDecoder();
  try {
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) text += decoder.decode(piece.value);
  } catch {
    // Reading may be aborted once the last words had their time.
  }
  assert.doesNotMatch(text, /\[DONE\]/);
  assert.match(text, /"the gateway is shutting down"/);
  await closing;
});
