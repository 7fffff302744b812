import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { settle, until } from '../../src/testing/clock/clock.ts';
import { type Gateway, MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { chatChunk, chatFailure, chatStream, chatWhole, shownText } from '../../src/testing/upstream/chat-upstream.ts';

const BODY = { model: 'test/m', messages: [{ role: 'user', content: 'hi' }], stream: true };
const HEDGED = { routing: { hedge_after: '2s' } };

/** Two endpoints of one model, the first with a higher price. */
function racing(t: TestContext, yaml: Record<string, unknown> = HEDGED): Promise<Gateway> {
  return startGateway(t, {
    yaml,
    providers: { first: { model: { id: 'test/m' } }, second: { model: { id: 'test/m' } } },
  });
}

/** The row of a streamed answer, by the id in its header. */
async function rowOf(gateway: Gateway, reply: Response): Promise<Record<string, unknown>> {
  const row = await gateway.get(`/generation?id=${reply.headers.get('x-generation-id')}`);
  assert.equal(row.status, 200);
  return ((await row.json()) as { data: Record<string, unknown> }).data;
}

test('a silent stream is hedged with the next endpoint: the faster one answers, the other is aborted', async (t) => {
  const gateway = await racing(t);
  gateway.upstream.script('first', chatStream('late', [{ gate: 'never' }]));
  gateway.upstream.script('second', chatStream('in time'));
  const pending = gateway.post('/chat/completions', BODY);
  const silent = await gateway.upstream.request('first');
  gateway.clock.jump(500);
  await settle();
  assert.equal(gateway.upstream.requests('second').length, 0);
  gateway.clock.jump(1_600);
  const reply = await pending;
  assert.equal(shownText(await reply.text()), 'in time');
  await until(() => silent.closedEarlyAt !== undefined, 'the slower call to be aborted');
  const row = await rowOf(gateway, reply);
  assert.equal(row['provider_name'], 'Provider second');
  // 10 prompt and 2 output tokens of the winner, and the loser's prompt: one token per four bytes of the body.
  const lost = Math.ceil(JSON.stringify(BODY).length / 4) * 0.000003;
  assert.ok(Math.abs((row['total_cost'] as number) - (10 * 0.000003 + 2 * 0.000015 + lost)) < 1e-9);
  assert.deepEqual(
    (row['provider_responses'] as { provider_name: string }[]).map(({ provider_name }) => provider_name),
    ['Provider first', 'Provider second'],
  );
  assert.equal(row['native_tokens_prompt'], 10);
});

test('the cost shown to the client equals the cost in the row', async (t) => {
  const gateway = await racing(t);
  gateway.upstream.script('first', chatStream('late', [{ gate: 'never' }]));
  gateway.upstream.script('second', chatStream('in time'));
  const pending = gateway.post('/chat/completions', BODY);
  await gateway.upstream.request('first');
  gateway.clock.jump(2_001);
  const reply = await pending;
  const told = /"cost":([0-9.e-]+)/.exec(await reply.text());
  assert.equal(Number(told![1]), (await rowOf(gateway, reply))['total_cost']);
});

test('the first attempt still wins if it is the first to show output, and the second is aborted', async (t) => {
  const gateway = await racing(t);
  gateway.upstream.script('first', chatStream('at last', [{ gate: 'go' }]));
  gateway.upstream.script('second', { end: 'stall-before-headers' });
  const pending = gateway.post('/chat/completions', BODY);
  await gateway.upstream.request('first');
  gateway.clock.jump(2_001);
  const second = await gateway.upstream.request('second');
  gateway.upstream.open('go');
  const reply = await pending;
  assert.equal(shownText(await reply.text()), 'at last');
  await until(() => second.closedEarlyAt !== undefined, 'the second call to be aborted');
  assert.equal((await rowOf(gateway, reply))['provider_name'], 'Provider first');
});

test('when one attempt fails, the other one answers, whichever it is', async (t) => {
  for (const failing of ['first', 'second']) {
    const gateway = await racing(t);
    gateway.upstream.script(failing, {
      headers: { 'content-type': 'text/event-stream' },
      chunks: [chatChunk({ role: 'assistant' }), { gate: 'fail' }, 'data: {"error":{"code":500,"message":"no"}}\n\n'],
    });
    const other = failing === 'first' ? 'second' : 'first';
    gateway.upstream.script(other, chatStream('good', [{ gate: 'go' }]));
    const pending = gateway.post('/chat/completions', BODY);
    await gateway.upstream.request('first');
    gateway.clock.jump(2_001);
    await gateway.upstream.request('second');
    gateway.upstream.open('fail');
    await until(
      () =>
        gateway.upstream.requests(failing)[0]!.closedEarlyAt !== undefined ||
        gateway.upstream.requests(failing)[0]!.answered,
      'the failure',
    );
    await settle();
    gateway.upstream.open('go');
    assert.equal(shownText(await (await pending).text()), 'good');
    await gateway.close();
  }
});

test('if both attempts fail, the client gets one error and one row', async (t) => {
  const gateway = await racing(t);
  gateway.upstream.script('first', { ...chatFailure(500), chunks: [{ gate: 'go' }, '{}'] });
  gateway.upstream.script('second', chatFailure(429, 'slow down', { 'retry-after': '7' }));
  const pending = gateway.post('/chat/completions', BODY);
  await gateway.upstream.request('first');
  gateway.clock.jump(2_001);
  await gateway.upstream.request('second');
  gateway.upstream.open('go');
  const reply = await pending;
  assert.ok(reply.status === 502 || reply.status === 429, `${reply.status}`);
  assert.equal((await rowOf(gateway, reply))['total_cost'], 0);
});

test('a client that leaves during a hedge ends both calls', async (t) => {
  const gateway = await racing(t);
  for (const key of ['first', 'second']) gateway.upstream.script(key, { end: 'stall-before-headers' });
  const abort = new AbortController();
  const pending = fetch(`${gateway.api}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer sk-svc-inf-test-${'i'.repeat(40)}`, 'content-type': 'application/json' },
    body: JSON.stringify(BODY),
    signal: abort.signal,
  }).catch(() => undefined);
  const first = await gateway.upstream.request('first');
  gateway.clock.jump(2_001);
  const second = await gateway.upstream.request('second');
  abort.abort();
  await until(() => first.closedEarlyAt !== undefined && second.closedEarlyAt !== undefined, 'both calls to end');
  await pending;
});

test('there is no hedge without the setting, for a whole answer, or when fallbacks are not allowed', async (t) => {
  const cases: [Record<string, unknown>, object][] = [
    [{}, {}],
    [HEDGED, { stream: false }],
    [HEDGED, { provider: { allow_fallbacks: false } }],
  ];
  for (const [yaml, more] of cases) {
    const gateway = await racing(t, yaml);
    const streamed = !('stream' in more);
    const answer = streamed ? chatStream('good', [{ gate: 'go' }]) : chatWhole('good');
    gateway.upstream.script('first', streamed ? answer : { ...answer, chunks: [{ gate: 'go' }, ...answer.chunks!] });
    const pending = gateway.post('/chat/completions', { ...BODY, ...more });
    await gateway.upstream.request('first');
    gateway.clock.jump(5_000);
    await settle();
    assert.equal(gateway.upstream.requests('second').length, 0);
    gateway.upstream.open('go');
    assert.equal((await pending).status, 200);
    await gateway.close();
  }
});

test('no hedge starts if the budget holds only one attempt', async (t) => {
  const gateway = await racing(t);
  // One attempt is bounded by 8,000 output tokens at 0.000015 and a prompt of about 1,100 tokens: about 0.124 USD.
  const created = await fetch(`${gateway.api}/keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${MANAGEMENT_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'small', limit: 0.2 }),
  });
  const { key } = (await created.json()) as { key: string };
  gateway.upstream.script('first', chatStream('good', [{ gate: 'go' }]));
  gateway.upstream.script('second', chatStream('dear'));
  const pending = gateway.post('/chat/completions', { ...BODY, max_tokens: 8_000 }, { authorization: `Bearer ${key}` });
  await gateway.upstream.request('first');
  gateway.clock.jump(2_001);
  await settle(100);
  assert.equal(gateway.upstream.requests('second').length, 0);
  gateway.upstream.open('go');
  assert.equal(shownText(await (await pending).text()), 'good');
});
