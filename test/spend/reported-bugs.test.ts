/** Ways around budgets, and windows that begin at the wrong time, as users of other gateways met them: of workspaces. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { startGatewayProcess } from '../../src/testing/process/gateway-process.ts';
import { chatFailure, chatWhole } from '../../src/testing/upstream/chat-upstream.ts';
import { controlOf, type Json } from '../workspaces/control.ts';

/** `free` and `paid` offer `test/both`; each has a model of its own too. The workspace has nothing left to spend. */
async function spentOut(t: TestContext) {
  const own = (id: string, more: object = {}) => ({ id, upstream_id: id, max_completion_tokens: 8_000, ...more });
  const paid = { pricing: { prompt: '0.000003', completion: '0.000015' } };
  const free = { pricing: { prompt: '0', completion: '0' } };
  const gateway = await startGateway(t, {
    providers: {
      free: { models: [own('test/both', free), own('test/free', free)] },
      paid: { models: [own('test/both', paid), own('test/paid', paid), own('test/unpriced', { pricing: null })] },
      vectors: { models: [own('test/vectors', { ...free, output_modalities: ['embeddings'] })] },
    },
  });
  const control = controlOf(gateway);
  const { id } = await control.made({ name: 'Team', slug: 'team' });
  const key = await control.keyIn(id, 'theirs');
  await control.call('PUT', '/workspaces/team/budgets/lifetime', { limit_usd: 0.000001 });
  return { gateway, key, ...control };
}

const WAYS: [string, Json][] = [
  ['as a fallback model', { models: ['test/free', 'test/paid'] }],
  ['as another endpoint of the model', { model: 'test/both' }],
  ['as the default model of the workspace', {}],
];

for (const [way, body] of WAYS) {
  test(`57 | a paid fallback of a free model is not called for a workspace with an exhausted budget: ${way}`, async (t) => {
    const { gateway, key, call } = await spentOut(t);
    await call('PATCH', '/workspaces/team', { default_text_model: 'test/both' });
    gateway.upstream.script('free', [chatFailure(503), { ...chatWhole('free'), repeat: true }]);
    gateway.upstream.script('paid', chatWhole('paid'));
    assert.equal((await key.ask(body)).status, 402);
    gateway.clock.jump(60_000);
    assert.equal((await key.ask(body)).status, 200);
    assert.equal(gateway.upstream.requests('paid').length, 0);
  });
}

test('57 and its kind | free models are served with an exhausted or exceeded budget', async (t) => {
  const { gateway, call, keyIn } = await spentOut(t);
  gateway.upstream.script('paid', { ...chatWhole('paid'), repeat: true });
  gateway.upstream.script('free', { ...chatWhole('free'), repeat: true });
  gateway.upstream.script('vectors', {
    headers: { 'content-type': 'application/json' },
    chunks: ['{"object":"list","model":"v","data":[{"object":"embedding","index":0,"embedding":[1]}],"usage":{}}'],
    repeat: true,
  });
  const key = await keyIn(undefined, 'spends', { limit: 1 });
  assert.equal((await key.ask({ model: 'test/paid', max_tokens: 10 })).status, 200);
  // 10 tokens of 0.000003 USD and 2 of 0.000015.
  for (const limit of [0.00006, 0.00001]) {
    assert.equal((await call('PATCH', `/keys/${key.hash}`, { limit })).status, 200);
    assert.equal((await key.ask({ model: 'test/paid', max_tokens: 1 })).status, 402);
    assert.equal((await key.ask({ model: 'test/free' })).status, 200, `a limit of ${limit}`);
    const vectors = await call('POST', '/embeddings', { model: 'test/vectors', input: 'x' }, key.token);
    assert.equal(vectors.status, 200, JSON.stringify(vectors.body));
  }
  const { data } = (await call('GET', `/keys/${key.hash}`)).body;
  assert.equal(data.usage, 0.00006);
});

test('57 and its kind | neither unpriced models nor other formats bypass a workspace budget', async (t) => {
  const { gateway, key, call } = await spentOut(t);
  const post = (path: string, body: Json, token = key.token) => call('POST', path, body, token);
  const messages = [{ role: 'user', content: 'x' }];
  assert.equal((await key.ask({ model: 'test/unpriced' })).status, 403);
  for (const [path, body] of [
    ['/chat/completions', { messages }],
    ['/chat/completions', { messages, stream: true }],
    ['/messages', { messages, max_tokens: 10 }],
    ['/responses', { input: 'x' }],
    ['/completions', { prompt: 'x' }],
  ] as const) {
    assert.equal((await post(path, { model: 'test/paid', ...body })).status, 402, path);
  }
  // Another key of the workspace, also one that is made now, is held to the same.
  const { workspace_id } = (await call('GET', `/keys/${key.hash}`)).body.data;
  const made = await call('POST', '/keys', { name: 'another', workspace_id, limit: 100 });
  assert.equal((await post('/chat/completions', { model: 'test/paid', messages }, made.body.key)).status, 402);
  assert.equal(gateway.upstream.requests('paid').length, 0);
});

test('63 | windows start at the same instant in every time zone of the process', async (t) => {
  const windowsIn = async (TZ: string): Promise<Json[]> => {
    const gateway = await startGatewayProcess(t, { yaml: {}, env: { TZ } });
    const { call, made, keyIn } = controlOf({ api: gateway.api });
    const { id } = await made({ name: 'W', slug: 'w' });
    const { token } = await keyIn(id, 'theirs');
    for (const [interval, limit_usd] of [
      ['daily', 1],
      ['weekly', 2],
      ['monthly', 3],
    ]) {
      assert.equal((await call('PUT', `/workspaces/w/budgets/${interval}`, { limit_usd })).status, 200);
    }
    const { data } = (await call('GET', '/budget', undefined, token)).body;
    assert.equal((await call('GET', '/key', undefined, MANAGEMENT_KEY)).status, 200);
    await gateway.end('SIGTERM');
    return data.map(({ window_start, resets_at }: Json) => ({ window_start, resets_at }));
  };
  const before = new Date();
  const [tokyo, newYork] = [await windowsIn('Asia/Tokyo'), await windowsIn('America/New_York')];
  // Midnight may have passed meanwhile; then the first of the two was right in its own day.
  if (before.getUTCDate() === new Date().getUTCDate()) assert.deepEqual(tokyo, newYork);
  for (const { window_start, resets_at } of [...tokyo, ...newYork]) {
    assert.match(window_start, /T00:00:00\.000Z$/);
    assert.match(resets_at, /T00:00:00\.000Z$/);
  }
  const [monthly, weekly, daily] = newYork;
  assert.match(monthly.window_start, /-01T/);
  assert.equal(new Date(weekly.window_start).getUTCDay(), 1);
  assert.equal(Date.parse(daily.resets_at) - Date.parse(daily.window_start), 86_400_000);
});
