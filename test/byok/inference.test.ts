/**
 * BYOK credentials during requests: in which order they are tried, what
 * follows when one fails, and which account pays.
 */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { PRICING, startGateway, UPSTREAM_KEY } from '../../src/testing/gateway/gateway.ts';
import { wholeOf } from '../../src/testing/upstream/answers.ts';
import { controlOf, type Json } from '../workspaces/control.ts';

const SHARED = `Bearer ${UPSTREAM_KEY}`;
const OK = {
  id: 'up-1',
  choices: [{ index: 0, message: { role: 'assistant', content: 'ok' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1000, completion_tokens: 100, total_tokens: 1100 },
};
/** 1,000 x 3 + 100 x 15 millionths of a dollar. */
const COST = 0.0045;
const refusal = (status: number, headers: Record<string, string> = {}) => ({
  ...wholeOf({ error: { message: `status ${status}`, code: String(status) } }),
  status,
  headers: { 'content-type': 'application/json', ...headers },
});

const jsonOf = async (response: Response): Promise<Json> => response.json();
const dataOf = async (response: Response): Promise<Json> => (await jsonOf(response)).data;

/** Two providers of one model, `a` configured before `b`. */
async function scene(t: TestContext, yaml: Record<string, unknown> = {}, model: Record<string, unknown> = {}) {
  const gateway = await startGateway(t, {
    yaml,
    providers: { a: { model: { id: 'test/m', ...model } }, b: { model: { id: 'test/m', ...model } } },
  });
  const control = controlOf(gateway);
  const key = await control.keyIn(undefined, 'caller');
  return {
    gateway,
    control,
    key,
    async own(provider: string, secret: string, more: Json = {}): Promise<Json> {
      const { status, body } = await control.call('POST', '/byok', { provider, key: secret, ...more });
      assert.equal(status, 201, JSON.stringify(body));
      return body.data;
    },
    ask: (body: Json = {}) => key.ask({ model: 'test/m', max_tokens: 100, ...body }),
    /** The credentials that a provider was asked with so far. */
    heard: (name: string) => gateway.upstream.requests(name).map(({ headers }) => headers.authorization),
    row: async (id: string) => dataOf(await gateway.get(`/generation?id=${id}`, key.token)),
    mine: async () => dataOf(await gateway.get('/key', key.token)),
  };
}

test('BYOK credentials are tried by their order, fallback ones last, before any credential of the gateway', async (t) => {
  const { gateway, own, ask, heard } = await scene(t);
  gateway.upstream.script('a', [{ ...refusal(503), repeat: true }]);
  gateway.upstream.script('b', [refusal(401), refusal(402), refusal(401), wholeOf(OK)]);
  await own('b', 'own-fallback', { is_fallback: true });
  await own('b', 'own-first');
  await own('b', 'own-second');
  const { status, body } = await ask();
  assert.equal(status, 200, JSON.stringify(body));
  assert.deepEqual(heard('b'), ['Bearer own-first', 'Bearer own-second', 'Bearer own-fallback', SHARED]);
  // The provider that is configured first has no BYOK credential: it comes before the other one's shared credential, and after all keys.
  assert.deepEqual(heard('a'), [SHARED]);
  assert.equal(body.usage.is_byok, false);
  assert.equal(body.usage.cost, COST);
});

test('an order of providers is one of the shared credentials only', async (t) => {
  const { gateway, own, ask, heard } = await scene(t);
  gateway.upstream.script('a', [{ ...wholeOf(OK), repeat: true }]);
  gateway.upstream.script('b', [{ ...wholeOf(OK), repeat: true }]);
  await own('b', 'own');
  await ask({ provider: { order: ['a', 'b'] } });
  await ask({ provider: { order: ['a'], allow_fallbacks: false } });
  assert.deepEqual([heard('a'), heard('b')], [[SHARED], ['Bearer own']]);
  // Who shuts a provider out shuts it out by every key.
  await ask({ provider: { ignore: ['b'] } });
  assert.deepEqual(heard('a'), [SHARED, SHARED]);
});

test('a key serves only the callers, models and requests that it names', async (t) => {
  const { gateway, control, key, own, ask, heard } = await scene(t);
  gateway.upstream.script('a', [{ ...wholeOf(OK), repeat: true }]);
  gateway.upstream.script('b', [{ ...wholeOf(OK), repeat: true }]);
  const other = await control.keyIn(undefined, 'other');
  const made = await own('a', 'own', { allowed_api_key_hashes: [other.hash] });
  await ask();
  await other.ask({ model: 'test/m', max_tokens: 100 });
  const change = async (body: Json) => {
    const { status } = await control.call('PATCH', `/byok/${made.id}`, body);
    assert.equal(status, 200);
    await ask();
  };
  await change({ allowed_api_key_hashes: [key.hash], allowed_models: ['test/other'] });
  await change({ allowed_models: ['test/m'] });
  await change({ disabled: true });
  await change({ disabled: false, allowed_user_ids: ['user_nobody'] });
  await change({ allowed_user_ids: null, key: 'rotated' });
  assert.deepEqual(heard('a'), [SHARED, 'Bearer own', SHARED, 'Bearer own', SHARED, SHARED, 'Bearer rotated']);
  assert.equal((await control.call('DELETE', `/byok/${made.id}`)).status, 200);
  await ask();
  assert.equal(heard('a').at(-1), SHARED);
});

test('what must use BYOK credentials never goes over the credentials of the gateway', async (t) => {
  const { gateway, control, own, ask, heard } = await scene(t);
  gateway.upstream.script('a', [{ ...refusal(401), repeat: true }]);
  gateway.upstream.script('b', [{ ...wholeOf(OK), repeat: true }]);
  const only = await own('a', 'own-only', { is_byok_only: true });
  // The provider is closed; the other one is not.
  assert.equal((await ask()).status, 200);
  assert.deepEqual([heard('a'), heard('b')], [['Bearer own-only'], [SHARED]]);
  const shut = await ask({ provider: { only: ['a'] } });
  assert.equal(shut.status, 502);
  assert.equal(shut.body.error.metadata.is_byok, true);
  assert.match(shut.body.error.message, /your BYOK credential/);
  // So it is for models that the key is not for.
  await control.call('PATCH', `/byok/${only.id}`, { allowed_models: ['test/other'] });
  const none = await ask({ provider: { only: ['a'] } });
  assert.equal(none.status, 404);
  assert.ok(none.body.error.metadata.excluded_endpoints.some((one: Json) => one.excluded_by.includes('own_keys_only')));
  await control.call('DELETE', `/byok/${only.id}`);
  const required = await own('a', 'own-required', { is_required: true });
  assert.equal((await ask({ provider: { only: ['a'] } })).status, 502);
  assert.equal(heard('a').at(-1), 'Bearer own-required');
  // For models out of its scope nothing is required.
  await control.call('PATCH', `/byok/${required.id}`, { allowed_models: ['test/other'] });
  await ask({ provider: { only: ['a'] } });
  assert.equal(heard('a').at(-1), SHARED);
});

test('what the owner declares of retention counts for that key alone', async (t) => {
  const { gateway, own, ask, heard } = await scene(t, {}, { data_policy: { zdr: false } });
  gateway.upstream.script('a', [{ ...wholeOf(OK), repeat: true }]);
  gateway.upstream.script('b', [{ ...wholeOf(OK), repeat: true }]);
  const strict = { provider: { zdr: true } };
  assert.equal((await ask(strict)).status, 404);
  await own('a', 'declared', { declared_zdr: true });
  await own('b', 'inherits');
  assert.equal((await ask(strict)).status, 200);
  assert.deepEqual([heard('a'), heard('b')], [['Bearer declared'], []]);
});

test('a failing credential goes into cooldown alone: the next one is used, and the provider as before', async (t) => {
  const { gateway, own, ask, heard } = await scene(t);
  gateway.upstream.script('a', [refusal(429, { 'retry-after': '60' }), wholeOf(OK), { ...wholeOf(OK), repeat: true }]);
  gateway.upstream.script('b', [{ ...wholeOf(OK), repeat: true }]);
  await own('a', 'limited');
  await ask();
  await ask();
  assert.deepEqual(heard('a'), ['Bearer limited', SHARED, SHARED]);
  await gateway.clock.jump(61_000);
  await ask();
  assert.equal(heard('a').at(-1), 'Bearer limited');
});

test('BYOK requests cost no credits; the provider’s cost is reported separately, streamed and whole', async (t) => {
  const { gateway, own, ask, key, row, mine } = await scene(t);
  const stream = [
    `data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, delta: { role: 'assistant', content: 'ok' } }] })}\n\n`,
    `data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })}\n\n`,
    `data: ${JSON.stringify({ id: 'c', choices: [], usage: OK.usage })}\n\n`,
    'data: [DONE]\n\n',
  ];
  gateway.upstream.script('a', [
    wholeOf(OK),
    { headers: { 'content-type': 'text/event-stream' }, chunks: stream },
    wholeOf(OK),
  ]);
  await own('a', 'own');
  const { body } = await ask();
  assert.equal(body.usage.cost, 0);
  assert.equal(body.usage.is_byok, true);
  assert.equal(body.usage.cost_details.upstream_inference_cost, COST);
  const streamed = await gateway.post(
    '/chat/completions',
    { model: 'test/m', max_tokens: 100, stream: true, messages: [{ role: 'user', content: 'hi' }] },
    { authorization: `Bearer ${key.token}` },
  );
  assert.match(await streamed.text(), /"cost":0,"is_byok":true/);
  const entered = await row(body.id);
  assert.equal(entered.is_byok, true);
  assert.equal(entered.usage, 0);
  assert.equal(entered.total_cost, 0);
  assert.equal(entered.upstream_inference_cost, COST);
  assert.equal(entered.provider_responses[0].is_byok, true);
  const { usage, byok_usage, byok_usage_daily } = await mine();
  assert.deepEqual([usage, byok_usage, byok_usage_daily], [0, 2 * COST, 2 * COST]);
});

test('BYOK and shared attempts of one request are charged separately', async (t) => {
  const { gateway, own, ask, row, mine } = await scene(t);
  // The key's own call breaks off after it was paid for, before anything could be shown; a shared credential answers.
  gateway.upstream.script('a', [refusal(500), wholeOf(OK)]);
  gateway.upstream.script('b', [wholeOf(OK)]);
  await own('a', 'own');
  const { body } = await ask();
  assert.equal(body.usage.is_byok, false);
  assert.equal(body.usage.cost, COST);
  const entered = await row(body.id);
  assert.deepEqual(
    entered.provider_responses.map((one: Json) => one.is_byok),
    [true, false],
  );
  assert.equal(entered.is_byok, false);
  const { usage, byok_usage } = await mine();
  assert.deepEqual([usage, byok_usage], [COST, 0]);
});

test('a limit counts BYOK spend only where it says so, and holds it before the call', async (t) => {
  const { gateway, control, own } = await scene(t);
  gateway.upstream.script('a', [{ ...wholeOf(OK), repeat: true }]);
  gateway.upstream.script('b', [{ ...refusal(401), repeat: true }]);
  await own('a', 'own', { is_byok_only: true });
  const ask = (token: Awaited<ReturnType<typeof control.keyIn>>) =>
    token.ask({ model: 'test/m', max_tokens: 100, provider: { only: ['a'] } });
  const counting = await control.keyIn(undefined, 'counts', { limit: 1.1 * COST, include_byok_in_limit: true });
  const free = await control.keyIn(undefined, 'does not', { limit: 0.000001 });
  assert.equal((await ask(counting)).status, 200);
  // The bound of another one is more than what is left.
  const refused = await ask(counting);
  assert.equal(refused.status, 402, JSON.stringify(refused.body));
  for (const _ of [1, 2, 3]) assert.equal((await ask(free)).status, 200);
});

test('the budget of a workspace counts BYOK spend where include_byok_in_budgets says so', async (t) => {
  const { gateway, control, own } = await scene(t);
  gateway.upstream.script('a', [{ ...wholeOf(OK), repeat: true }]);
  const workspace = await control.made({ name: 'Team', slug: 'team' });
  await own('a', 'own', { is_byok_only: true, workspace_id: workspace.id });
  const key = await control.keyIn(workspace.id, 'member');
  const budget = (body: Json) => control.call('PUT', '/workspaces/team/budgets/daily', body);
  const ask = () => key.ask({ model: 'test/m', max_tokens: 100, provider: { only: ['a'] } });
  assert.equal((await budget({ limit_usd: COST, include_byok_in_budgets: false })).status, 200);
  for (const _ of [1, 2, 3]) assert.equal((await ask()).status, 200);
  assert.equal((await budget({ limit_usd: COST, include_byok_in_budgets: true })).status, 200);
  assert.equal((await ask()).status, 402);
});

test('an unpriced model is served with a BYOK credential, and refused with the gateway’s for keys with a limit', async (t) => {
  const { gateway, control, own } = await scene(t, {}, { pricing: undefined });
  gateway.upstream.script('a', [{ ...wholeOf(OK), repeat: true }]);
  gateway.upstream.script('b', [{ ...wholeOf(OK), repeat: true }]);
  const key = await control.keyIn(undefined, 'limited', { limit: 1 });
  const ask = () => key.ask({ model: 'test/m', max_tokens: 100 });
  assert.equal((await ask()).status, 403);
  await own('a', 'own');
  const { status, body } = await ask();
  assert.equal(status, 200, JSON.stringify(body));
  assert.equal(body.usage.cost, 0);
});

test('BYOK credentials serve every operation', async (t) => {
  const gateway = await startGateway(t, {
    providers: { a: { model: { id: 'test/m', output_modalities: ['text', 'embeddings'], pricing: PRICING } } },
  });
  const control = controlOf(gateway);
  const vectors = { data: [{ index: 0, embedding: [0.1, 0.2] }], usage: { prompt_tokens: 1000, total_tokens: 1000 } };
  gateway.upstream.script('a', [wholeOf(vectors), wholeOf(OK), wholeOf(OK)]);
  assert.equal((await control.call('POST', '/byok', { provider: 'a', key: 'own' })).status, 201);
  const embedded = await jsonOf(await gateway.post('/embeddings', { model: 'test/m', input: 'hi' }));
  assert.equal(embedded.usage?.is_byok, true, JSON.stringify(embedded));
  assert.equal(embedded.usage.cost, 0);
  const message = await gateway.post('/messages', {
    model: 'test/m',
    max_tokens: 10,
    messages: [{ role: 'user', content: 'hi' }],
  });
  assert.equal(message.status, 200);
  const response = await gateway.post('/responses', { model: 'test/m', input: 'hi' });
  assert.equal((await jsonOf(response)).usage.is_byok, true);
  assert.deepEqual(
    gateway.upstream.requests('a').map(({ headers }) => headers.authorization),
    ['Bearer own', 'Bearer own', 'Bearer own'],
  );
});
