/** GET /activity: sums of real requests by day, model and endpoint, through @openrouter/sdk and over plain HTTP. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { OpenRouter } from '@openrouter/sdk';
import { INFERENCE_KEY, MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { chatFailure, chatWhole } from '../../src/testing/upstream/chat-upstream.ts';

const DAY_MS = 86_400_000;
const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  { providers: { one: {}, two: {} } },
);
const { upstream, clock } = gateway;
const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10);

interface Item {
  date: string;
  model: string;
  usage: number;
  requests: number;
  workspace_id?: string;
}

const usage = {
  prompt_tokens: 10,
  completion_tokens: 6,
  total_tokens: 16,
  prompt_tokens_details: { cached_tokens: 4 },
  completion_tokens_details: { reasoning_tokens: 2 },
};
/** Six tokens of prompt, four from the cache, six of completion at the prices of the gateway's tests. */
const COST = 6 * 3e-6 + 4 * 0.3e-6 + 6 * 15e-6;

async function ask(provider: string, key = INFERENCE_KEY): Promise<Response> {
  const body = JSON.stringify({ model: `test/${provider}`, messages: [{ role: 'user', content: 'hi' }] });
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  return fetch(`${gateway.api}/chat/completions`, { method: 'POST', headers, body });
}

async function activity(query = '', key = MANAGEMENT_KEY): Promise<{ status: number; data: Item[]; text: string }> {
  const response = await gateway.get(`/activity${query}`, key);
  const text = await response.text();
  return { status: response.status, data: JSON.parse(text).data, text };
}

async function control(method: string, path: string, body?: object) {
  const headers = { authorization: `Bearer ${MANAGEMENT_KEY}`, 'content-type': 'application/json' };
  const response = await fetch(gateway.api + path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
  assert.ok(response.ok, `${method} ${path}: ${response.status}`);
  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape
  return (await response.json()) as any;
}

const days: string[] = [];
let other: { key: string; data: { hash: string; workspace_id: string } };

/** First day: two requests to one, one to two by another key. Second day: one to one. Third day: one that no endpoint answers. */
before(async () => {
  upstream.script('one', [{ ...chatWhole('hi', {}, { usage }), repeat: true }]);
  upstream.script('two', [{ ...chatWhole('hi', {}, { usage }), repeat: true }]);
  other = await control('POST', '/keys', { name: 'other' });
  days.push(dayOf(clock.now()));
  for (const [provider, key] of [['one'], ['one'], ['two', other.key]] as const) {
    assert.equal((await ask(provider, key)).status, 200);
  }
  clock.jump(DAY_MS);
  days.push(dayOf(clock.now()));
  assert.equal((await ask('one')).status, 200);
  clock.jump(DAY_MS);
  days.push(dayOf(clock.now()));
  upstream.script('one', [chatFailure(400)]);
  assert.equal((await ask('one')).status, 400);
});

test('every day, model and endpoint has its sums, newest first, and a day that is not over has none', async () => {
  const { status, data, text } = await activity();
  assert.equal(status, 200, text);
  const ofOne = {
    model: 'test/one',
    model_permaslug: 'test/one',
    endpoint_id: 'one:test/one',
    provider_name: 'Provider one',
    byok_usage_inference: 0,
  };
  const sums = (count: number) => ({
    requests: count,
    usage: Number((count * COST).toFixed(9)),
    prompt_tokens: 10 * count,
    completion_tokens: 6 * count,
    reasoning_tokens: 2 * count,
  });
  assert.deepEqual(data, [
    { date: days[1], ...ofOne, ...sums(1) },
    { date: days[0], ...ofOne, ...sums(2) },
    {
      ...{ date: days[0], ...ofOne, ...sums(1) },
      ...{ model: 'test/two', model_permaslug: 'test/two', endpoint_id: 'two:test/two', provider_name: 'Provider two' },
    },
  ]);
});

test('a day, a key, its maker and a workspace narrow the sums', async () => {
  const models = async (query: string) => (await activity(query)).data.map(({ date, model }) => `${date} ${model}`);
  assert.deepEqual(await models(`?date=${days[1]}`), [`${days[1]} test/one`]);
  assert.deepEqual(await models(`?api_key_hash=${other.data.hash}`), [`${days[0]} test/two`]);
  assert.deepEqual(await models(`?api_key_hash=${other.data.hash}&date=${days[1]}`), []);
  assert.deepEqual(await models('?user_id=user_nobody'), []);
  assert.equal((await models(`?workspace_id=${other.data.workspace_id}`)).length, 3);
});

test('group_by=workspace names the workspace of each row, and nothing else does', async () => {
  const plain = (await activity()).data;
  assert.ok(plain.every((item) => item.workspace_id === undefined));
  const grouped = (await activity('?group_by=workspace')).data;
  assert.deepEqual(
    grouped.map((item) => item.workspace_id),
    plain.map(() => other.data.workspace_id),
  );
});

test('a key that is deleted keeps its activity', async () => {
  const short: typeof other = await control('POST', '/keys', { name: 'short' });
  upstream.script('two', [{ ...chatWhole('hi', {}, { usage }), repeat: true }]);
  assert.equal((await ask('two', short.key)).status, 200);
  await control('DELETE', `/keys/${short.data.hash}`);
  clock.jump(DAY_MS);
  const { data } = await activity(`?api_key_hash=${short.data.hash}`);
  assert.equal(data.length, 1);
});

test('a key that was rotated has one activity, under its hash of now and under the one before', async () => {
  const former: typeof other = await control('POST', '/keys', { name: 'rotated' });
  upstream.script('two', [{ ...chatWhole('hi', {}, { usage }), repeat: true }]);
  assert.equal((await ask('two', former.key)).status, 200);
  const now: typeof other = await control('POST', `/keys/${former.data.hash}/rotate`, {
    revoke_previous_after_seconds: 0,
  });
  assert.equal((await ask('two', now.key)).status, 200);
  clock.jump(DAY_MS);
  for (const { hash } of [former.data, now.data]) {
    const { data } = await activity(`?api_key_hash=${hash}`);
    assert.deepEqual(
      data.map(({ requests }) => requests),
      [2],
    );
  }
});

test('the error of a wrong query names the field', async () => {
  const today = dayOf(clock.now());
  const tooOld = dayOf(clock.now() - 31 * DAY_MS);
  const wrong: [string, number, RegExp][] = [
    [`?date=${today}`, 400, /^date must be one of the last 30 completed days/],
    [`?date=${tooOld}`, 400, /^date must be one of the last 30/],
    ['?date=2026-02-31', 400, /^date must be a day/],
    ['?date=yesterday', 400, /^date must be a day/],
    ['?group_by=model', 400, /^group_by/],
    ['?workspace_id=mine', 400, /^workspace_id/],
    ['?nonsense=1', 400, /nonsense/],
    ['?workspace_id=00000000-0000-7000-8000-000000000000', 404, /no such workspace/],
    [`?api_key_hash=${'0'.repeat(64)}`, 404, /no such key/],
  ];
  for (const [query, status, message] of wrong) {
    const answer = await activity(query);
    assert.equal(answer.status, status, query);
    assert.match(JSON.parse(answer.text).error.message, message);
  }
  assert.equal((await activity('', INFERENCE_KEY)).status, 403);
});

test('@openrouter/sdk reads the activity with every parameter that it has', async () => {
  const client = new OpenRouter({ serverURL: gateway.api, apiKey: MANAGEMENT_KEY, retryConfig: { strategy: 'none' } });
  const all = await client.analytics.getUserActivity();
  assert.equal(all.data.find(({ date, model }) => date === days[1] && model === 'test/one')?.promptTokens, 10);
  const narrowed = await client.analytics.getUserActivity({
    date: days[0]!,
    apiKeyHash: other.data.hash,
    groupBy: 'workspace',
    workspaceId: other.data.workspace_id,
  });
  assert.deepEqual(
    narrowed.data.map(({ endpointId, workspaceId, usage: spent }) => ({ endpointId, workspaceId, spent })),
    [{ endpointId: 'two:test/two', workspaceId: other.data.workspace_id, spent: Number(COST.toFixed(9)) }],
  );
});

test('thirty days later nothing of it is left', async () => {
  clock.jump(31 * DAY_MS);
  assert.deepEqual((await activity()).data, []);
});
