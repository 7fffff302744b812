/** Decisions and datasets through `@openrouter/sdk`, unmodified. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { OpenRouter } from '@openrouter/sdk';
import { INFERENCE_KEY, MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { answerOf } from '../../src/testing/upstream/answers.ts';
import { controlOf, type Json } from '../workspaces/control.ts';

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    env: { GATEHOUSE_NAMESPACE: 'openrouter' },
    providers: { chat: { kind: 'openrouter' }, messages: { kind: 'messages' } },
  },
);
const options = { serverURL: gateway.api, retryConfig: { strategy: 'none' } } as const;
const sdk = new OpenRouter({ apiKey: INFERENCE_KEY, ...options });
const admin = new OpenRouter({ apiKey: MANAGEMENT_KEY, ...options });
const usage = { input: 100, output: 20 };
const tell = (format: 'chat' | 'messages', told: Json) =>
  gateway.upstream.script(format, { ...answerOf(format, false, { text: JSON.stringify(told), usage }), repeat: true });

const decisionsRequest = {
  model: 'test/chat',
  state: { mail: 'Where is my parcel?' },
  questions: {
    'which team': {
      type: 'choice' as const,
      instructions: 'Who answers?',
      criteria: { sales: null, support: 'Parcels' },
    },
    urgency: { type: 'score' as const, instructions: 'How urgent?', criteria: ['low', 'high'] },
    polite: { type: 'noul' as const, instructions: 'Is it polite?', criteria: { true: 'kind', false: 'rude' } },
  },
};

test('typed questions get typed answers from models of both formats', async () => {
  for (const format of ['chat', 'messages'] as const) {
    tell(format, { q0: 'support', q1: 1, q2: 0.75 });
    const { answers, ...told } = await sdk.systemOne.create({
      decisionsRequest: { ...decisionsRequest, model: `test/${format}` },
    });
    assert.deepEqual(answers, {
      'which team': { type: 'choice', choice: 'support' },
      urgency: { type: 'score', score: 1, legend: { 0: 'low', 1: 'high' } },
      polite: { type: 'noul', noul: 0.75 },
    });
    assert.deepEqual([told.usage.inputTokens, told.usage.outputTokens, told.model], [100, 20, `test/${format}`]);
    assert.ok((told.usage as Json).cost > 0);
  }
  const { response_format } = gateway.upstream.requests('chat').at(-1)!.json as Json;
  const { schema } = response_format.json_schema;
  assert.deepEqual(schema.properties.q0, { type: 'string', enum: ['sales', 'support'] });
});

test('an answer that is none of the possible ones is left out, and the older path answers the same', async () => {
  tell('chat', { q0: 'marketing', q1: 2, q2: 'yes' });
  const { answers } = await sdk.alpha.decisions.create({ decisionsRequest }, { serverURL: gateway.url });
  assert.deepEqual(answers, {});
});

test('questions without what they need are refused with their path', async () => {
  const { call } = controlOf(gateway);
  for (const [question, path] of [
    [{ type: 'choice', instructions: 'x' }, 'questions.q.criteria'],
    [{ type: 'score', instructions: 'x', criteria: { a: 'x' } }, 'questions.q.criteria'],
    [{ type: 'noul', instructions: 'x', criteria: { true: 'x' } }, 'questions.q.criteria'],
    [{ type: 'guess', instructions: 'x' }, 'questions.q.type'],
  ] as const) {
    const body = { model: 'test/chat', state: 'x', questions: { q: question } };
    const { status, body: told } = await call('POST', '/systemone', body, INFERENCE_KEY);
    assert.equal(status, 400);
    assert.ok(told.error.message.startsWith(path), told.error.message);
  }
});

test('rankings and costs of sessions are those of the ledger, for a key those of its workspace', async () => {
  const { call, keyIn, made } = controlOf(gateway);
  tell('chat', 'x');
  const workspace = await made({ name: 'apps', slug: 'apps' });
  const key = await keyIn(workspace.id, 'apps');
  const ask = async (title: string, session: string) => {
    const response = await fetch(`${gateway.api}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key.token}`, 'content-type': 'application/json', 'x-title': title },
      body: JSON.stringify({ model: 'test/chat', messages: [{ role: 'user', content: 'x' }], session_id: session }),
    });
    assert.equal(response.status, 200, await response.text());
  };
  await ask('My App', 'one');
  await ask('My App', 'one');
  await ask('My App', 'two');
  await ask('Other', 'three');
  const today = new Date(gateway.clock.now()).toISOString().slice(0, 10);
  const days = { startDate: today, endDate: today };
  const own = new OpenRouter({ apiKey: key.token, ...options });
  const { data, meta } = await own.datasets.getRankingsDaily(days);
  assert.deepEqual(data, [{ date: today, modelPermaslug: 'test/chat', totalTokens: '480' }]);
  assert.deepEqual([meta.startDate, meta.endDate, meta.version], [today, today, 'v1']);
  assert.equal((await admin.datasets.getRankingsDaily(days)).data[0]!.totalTokens, String(480 + 240));
  const apps = (await own.datasets.getAppRankings(days)).result.data;
  assert.deepEqual(
    apps.map(({ appName, rank, totalRequests, totalTokens }) => [appName, rank, totalRequests, totalTokens]),
    [
      ['My App', 1, 3, '360'],
      ['Other', 2, 1, '120'],
    ],
  );
  assert.equal((await own.datasets.getAppRankings({ ...days, sort: 'trending' })).result.data.length, 2);
  assert.deepEqual(
    (await own.datasets.getAppRankings({ ...days, offset: 1 })).result.data.map(({ rank }) => rank),
    [2],
  );
  gateway.clock.jump(86_400_000);
  const sessions = (await own.datasets.getSessionCost({ appSlug: 'my-app' })).result.data;

  assert.deepEqual(
    sessions.map(({ turnRange, medianSessionCostUsd }) => [turnRange, medianSessionCostUsd]).toSorted(),
    [
      ['1-turn', 0.0006],
      ['2-9-turns', 0.0012],
    ],
  );
  for (const [query, path] of [
    ['rankings-daily?category=programming', 'category'],
    ['rankings-daily?start_date=2026-02-31', 'start_date'],
    ['rankings-daily?start_date=2026', 'start_date'],
    ['app-rankings?end_date=2026-02', 'end_date'],
    ['app-rankings?end_date=2999-01-01', 'end_date'],
    ['app-rankings?start_date=2020-01-01', 'start_date'],
  ] as const) {
    const { status, body } = await call('GET', `/datasets/${query}`);
    assert.equal(status, 400, query);
    assert.ok(body.error.message.startsWith(path), body.error.message);
  }
  const { status, body } = await call('GET', '/benchmarks');
  assert.deepEqual([status, /measures no scores/.test(body.error.message)], [404, true]);
});
