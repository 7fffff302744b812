/** A budget is asked where the endpoint is chosen, whatever way led to it; users of other gateways met ways around it. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { settle } from '../../src/testing/clock/clock.ts';
import { type Gateway, MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { chatFailure, chatStream, chatWhole } from '../../src/testing/upstream/chat-upstream.ts';

const FREE = { pricing: { prompt: '0', completion: '0' } };
const MESSAGES = [{ role: 'user', content: 'x' }];

/** `free` and `paid` offer `test/both`; each has a model of its own too. The key has nothing left to spend. */
async function spentOut(t: TestContext, yaml: Record<string, unknown> = {}, limit = 0.000001) {
  const own = (id: string, more: object = {}) => ({ id, upstream_id: id, max_completion_tokens: 8_000, ...more });
  const paid = { pricing: { prompt: '0.000003', completion: '0.000015' } };
  const gateway = await startGateway(t, {
    yaml,
    providers: {
      free: { models: [own('test/both', FREE), own('test/free', FREE)] },
      paid: { models: [own('test/both', paid), own('test/paid', paid)] },
    },
  });
  const created = await fetch(`${gateway.api}/keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${MANAGEMENT_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'spent', limit }),
  });
  const { key } = (await created.json()) as { key: string };
  const ask = (body: object) =>
    gateway.post('/chat/completions', { messages: MESSAGES, ...body }, { authorization: `Bearer ${key}` });
  return { gateway, ask };
}

const paidCalls = (gateway: Gateway) => gateway.upstream.requests('paid').length;

const WAYS: [string, object][] = [
  ['as a fallback model', { models: ['test/free', 'test/paid'] }],
  ['as another endpoint of the model', { model: 'test/both' }],
  [
    'sorted across models',
    { models: ['test/free', 'test/paid'], provider: { sort: { by: 'price', partition: 'none' } } },
  ],
  ['by an order that has it last', { model: 'test/both', provider: { order: ['free', 'paid'] } }],
];

for (const [way, body] of WAYS) {
  test(`57 | a paid fallback of a free model that is down is not called without a budget: ${way}`, async (t) => {
    const { gateway, ask } = await spentOut(t);
    gateway.upstream.script('free', [chatFailure(503), { ...chatWhole('free'), repeat: true }]);
    gateway.upstream.script('paid', chatWhole('paid'));
    assert.equal((await ask(body)).status, 402);
    assert.equal(paidCalls(gateway), 0);
    gateway.clock.jump(60_000);
    assert.equal((await ask(body)).status, 200);
    assert.equal(paidCalls(gateway), 0);
  });
}

test('57 and its kind | a silent free stream is not hedged by an endpoint beyond the budget', async (t) => {
  const { gateway, ask } = await spentOut(t, { routing: { hedge_after: '1s' } });
  gateway.upstream.script('free', chatStream('free', [{ gate: 'go' }]));
  gateway.upstream.script('paid', chatStream('paid'));
  const pending = ask({ model: 'test/both', stream: true });
  await gateway.upstream.request('free');
  gateway.clock.jump(2_000);
  await settle(100);
  assert.equal(paidCalls(gateway), 0);
  gateway.upstream.open('go');
  assert.match(await (await pending).text(), /free/);
});

test('a limit of 0 is a limit: what is free is answered, what costs something is 402', async (t) => {
  const { gateway, ask } = await spentOut(t, {}, 0);
  gateway.upstream.script('free', { ...chatWhole('free'), repeat: true });
  gateway.upstream.script('paid', chatWhole('paid'));
  assert.equal((await ask({ model: 'test/paid' })).status, 402);
  assert.equal((await ask({ model: 'test/both' })).status, 200);
  assert.equal((await ask({ model: 'test/free' })).status, 200);
  assert.equal(paidCalls(gateway), 0);
});

/** Two services offer `test/both` for 12 cents at most; the key's limit is lower, and so is its workspace's budget. */
test('what a nearly spent limit pays for is asked of the next endpoint too, and of several limits the lowest counts', async (t) => {
  const model = {
    id: 'test/both',
    upstream_id: 'both',
    max_completion_tokens: 8_000,
    pricing: { prompt: '0.000003', completion: '0.000015' },
  };
  const gateway = await startGateway(t, { providers: { one: { models: [model] }, two: { models: [model] } } });
  const manage = async (method: string, path: string, body?: object) => {
    const headers = { authorization: `Bearer ${MANAGEMENT_KEY}`, 'content-type': 'application/json' };
    const answer = await fetch(gateway.api + path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
    // biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
    return (await answer.json()) as any;
  };
  const { key, data } = await manage('POST', '/keys', { name: 'nearly spent', limit: 0.03 });
  await manage('PUT', `/workspaces/${data.workspace_id}/budgets/daily`, { limit_usd: 0.05 });
  const ask = (more: object = {}) =>
    gateway.post(
      '/chat/completions',
      { model: 'test/both', messages: MESSAGES, ...more },
      { authorization: `Bearer ${key}` },
    );
  gateway.upstream.script('one', chatFailure(404));
  gateway.upstream.script('two', chatWhole('fine'));
  const refused = await ask({ max_tokens: 8_000 });
  assert.equal(refused.status, 402);
  const { could_cost_usd: cost, left_usd: left } = ((await refused.json()) as { error: { metadata: never } }).error
    .metadata;
  assert.ok(cost > 0.12 && left <= 0.05, `${cost} of ${left}`);
  assert.equal((await ask()).status, 200);
  const [first, second] = ['one', 'two'].map((name) => {
    const body = gateway.upstream.requests(name).at(-1)!.json as {
      max_tokens?: number;
      max_completion_tokens?: number;
    };
    return body.max_completion_tokens ?? body.max_tokens;
  });
  assert.ok(first !== undefined && first > 1_024 && first <= 2_000, `${first}`);
  assert.equal(second, first);
});
