/** `/batches` through a whole gateway. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { until } from '../../src/testing/clock/clock.ts';
import { INFERENCE_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
type Json = any;

const gateway = await startGateway({ after: (close) => after(close as () => Promise<void>) });

async function send(method: string, route: string, body?: unknown): Promise<{ status: number; body: Json }> {
  const response = await fetch(gateway.api + route, {
    method,
    headers: { authorization: `Bearer ${INFERENCE_KEY}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  return { status: response.status, body: await response.json() };
}

const chatItem = (customId: string, text: string) => ({
  custom_id: customId,
  body: { max_tokens: 50, messages: [{ role: 'user', content: text }] },
});
const chatBatch = (requests: unknown[], more: object = {}) => ({
  endpoint: '/v1/chat/completions',
  model: 'simulated/echo',
  requests,
  ...more,
});

const ended = (id: string): Promise<Json> =>
  until(async () => {
    const { body } = await send('GET', `/batches/${id}`);
    return ['completed', 'failed', 'expired', 'cancelled'].includes(body.status) && body;
  }, `the batch ${id} ends`);

test('a batch runs, and its results come in the order of its requests', async () => {
  const requests = Array.from({ length: 30 }, (_, n) => chatItem(`item-${n}`, `word ${n}`));
  const { status, body } = await send('POST', '/batches', chatBatch(requests));
  assert.equal(status, 202, JSON.stringify(body));
  assert.deepEqual([body.status, body.request_counts], ['validating', { total: 30, completed: 0, failed: 0 }]);
  const batch = await ended(body.id);
  assert.equal(batch.status, 'completed', JSON.stringify(batch));
  assert.deepEqual(batch.request_counts, { total: 30, completed: 30, failed: 0 });
  assert.deepEqual(
    batch.results.map(({ custom_id: id }: Json) => id),
    requests.map(({ custom_id: id }) => id),
  );
  for (const [n, { response, error }] of batch.results.entries()) {
    assert.equal(error, null);
    assert.match(response.body.choices[0].message.content, new RegExp(`word ${n}`));
    assert.equal(response.body.id, response.request_id);
  }
  console.log(JSON.stringify(batch.usage), JSON.stringify(batch.results[0]));
});
