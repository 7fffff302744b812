/**
 * `@openrouter/sdk`, unmodified, through every operation of analytics; it checks each answer by its schemas. Of rows it keeps
 * no member, since it knows none, so what they say is read from the answer that it got.
 */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { HTTPClient, OpenRouter } from '@openrouter/sdk';
import { MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { chatFailure, chatWhole } from '../../src/testing/upstream/chat-upstream.ts';

const DAY_MS = 86_400_000;
const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  { env: { GATEHOUSE_NAMESPACE: 'openrouter' }, providers: { one: {}, two: {} } },
);
const { upstream, clock } = gateway;
type Rows = Record<string, unknown>[];
let rows: Rows = [];
const httpClient = new HTTPClient();
httpClient.addHook('response', async (response) => {
  const { data } = (await response.clone().json()) as { data?: { data?: Rows } };
  rows = data?.data ?? [];
});
const { analytics } = new OpenRouter({
  httpClient,
  apiKey: MANAGEMENT_KEY,
  serverURL: gateway.api,
  retryConfig: { strategy: 'none' },
});

const usage = {
  prompt_tokens: 10,
  completion_tokens: 6,
  total_tokens: 16,
  prompt_tokens_details: { cached_tokens: 4 },
};
const COST = 6 * 3e-6 + 4 * 0.3e-6 + 6 * 15e-6;

test('what was asked is in the answer at once, and in the activity when its day is over', async () => {
  const startedAt = clock.now();
  upstream.script('one', [chatWhole('hi', {}, { usage }), chatWhole('hi', {}, { usage })]);
  upstream.script('two', [chatFailure(400)]);
  for (const model of ['test/one', 'test/one', 'test/two']) {
    await gateway.post('/chat/completions', { model, messages: [{ role: 'user', content: 'hi' }] });
  }
  const { data } = await analytics.queryAnalytics({
    requestBody: {
      metrics: ['request_count', 'total_usage', 'tokens_total', 'cache_hit_rate', 'error_rate'],
      dimensions: ['model'],
      granularity: 'day',
      timeRange: { start: new Date(startedAt - 1_000), end: new Date(clock.now() + 1_000) },
      orderBy: { field: 'request_count', direction: 'desc' },
    },
  });
  assert.equal(data.metadata.rowCount, 2);
  assert.equal(data.metadata.truncated, false);
  const date = `${new Date(startedAt).toISOString().slice(0, 10)}T00:00:00.000Z`;
  const [one, two] = rows;
  assert.deepEqual(one, {
    date,
    model: 'test/one',
    request_count: 2,
    total_usage: 2 * COST,
    tokens_total: 32,
    cache_hit_rate: 0.4,
    error_rate: 0,
  });
  assert.deepEqual([two?.['model'], two?.['request_count'], two?.['error_rate']], ['test/two', 1, 1]);
  clock.jump(DAY_MS);
  const activity = await analytics.getUserActivity({});
  const item = activity.data.find(({ model }) => model === 'test/one')!;
  assert.deepEqual([item.requests, item.promptTokens, item.usage], [2, 20, 2 * COST]);
});

test('every name of the meta can be asked for', async () => {
  const { data } = await analytics.getAnalyticsMeta();
  const seen: string[] = [];
  for (const { name } of data.dimensions) {
    for (const granularity of data.granularities.map((each) => each.name)) {
      await analytics.queryAnalytics({
        requestBody: { metrics: data.metrics.map((metric) => metric.name), dimensions: [name], granularity },
      });
      seen.push(`${name} ${granularity} ${Object.keys(rows[0]!).length}`);
    }
  }
  assert.equal(seen.length, data.dimensions.length * 5);
  assert.ok(seen.every((line) => line.endsWith(` ${data.metrics.length + 2}`)));
});

test('a question that is wrong is a 400 of the SDK', async () => {
  await assert.rejects(
    analytics.queryAnalytics({ requestBody: { metrics: ['no_such_metric'] } }),
    (error) => (error as { statusCode?: number }).statusCode === 400,
  );
});
