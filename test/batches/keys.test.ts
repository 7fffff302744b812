/** A batch whose key or workspace ends before or while it runs. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import { until } from '../../src/testing/clock/clock.ts';
import { connect } from '../../src/testing/database/rows.ts';
import { INFERENCE_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { controlOf } from '../workspaces/control.ts';
import { batchesOf, chatBatch, type Json, scripted } from './batches-client.ts';

const gateway = await startGateway({ after: (close) => after(close as () => Promise<void>) });
const control = controlOf(gateway);
const ours = batchesOf(gateway);
const slow = (count: number) =>
  Array.from({ length: count }, (_, n) => scripted(`item-${n}`, { text: 'x', delay_ms: { headers: 200 } }));
const keyOf = async (body: object = {}) =>
  (await control.call('POST', '/keys', { name: 'short-lived', ...body })).body as { key: string; data: Json };

/** Submits a body whose last part is sent after `meanwhile`. */
async function uploadAround(
  route: string,
  key: string,
  body: unknown,
  meanwhile: () => Promise<unknown>,
): Promise<Json> {
  const bytes = Buffer.from(JSON.stringify(body));
  async function* content() {
    // Short bodies are read whole, to tell whose API they are of.
    yield Buffer.alloc(200 * 1024, ' ');
    yield bytes.subarray(0, bytes.length - 10);
    // The key is checked when the head has arrived.
    await until(async () => (await intakes()) > 0, 'the body arrives');
    await meanwhile();
    yield bytes.subarray(bytes.length - 10);
  }
  const response = await fetch(gateway.api + route, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: content() as never,
    duplex: 'half',
  } as RequestInit);
  const answer = await response.json();
  assert.ok(response.ok, JSON.stringify(answer));
  return answer;
}

async function intakes(): Promise<number> {
  const [row] = await rowsOf('select count(*)::int as count from batch_intakes');
  return row!['count'] as number;
}

async function rowsOf(sql: string, values: unknown[] = []): Promise<Record<string, unknown>[]> {
  const client = await connect(gateway.target);
  try {
    return (await client.query(sql, values)).rows as Record<string, unknown>[];
  } finally {
    await client.end();
  }
}

test('a batch whose key is deleted before it begins fails, and each of its requests says why', async () => {
  const { key, data } = await keyOf();
  const batch = await uploadAround('/batches', key, chatBatch(slow(3)), () =>
    control.call('DELETE', `/keys/${data.hash}`),
  );
  const failed = await ours.ended(batch.id);
  assert.equal(failed.status, 'failed');
  assert.match(failed.error.message, /the key of the batch: /);
  assert.deepEqual(failed.request_counts, { total: 3, completed: 0, failed: 3 });
  assert.deepEqual(
    failed.results.map(({ response, error }: Json) => [response, error.error_type]),
    Array.from({ length: 3 }, () => [null, 'authentication']),
  );
});

test('the same of a message batch: it has ended, and its requests have errored', async () => {
  const { key, data } = await keyOf();
  const requests = slow(2).map(({ custom_id, body }) => ({
    custom_id,
    params: { model: 'simulated/script', ...body },
  }));
  const { id } = await uploadAround('/messages/batches', key, { requests }, () =>
    control.call('PATCH', `/keys/${data.hash}`, { disabled: true }),
  );
  const { batches } = new Anthropic({ baseURL: gateway.url, apiKey: INFERENCE_KEY, authToken: null }).messages;
  const ended = await until(async () => {
    const batch = await batches.retrieve(id);
    return batch.processing_status === 'ended' ? batch : undefined;
  }, 'the batch ends');
  assert.deepEqual(ended.request_counts, { processing: 0, succeeded: 0, errored: 2, canceled: 0, expired: 0 });
  for await (const { result } of await batches.results(id)) {
    assert.ok(result.type === 'errored' && result.error.error.type === 'authentication_error', JSON.stringify(result));
  }
});

test('a key that is deleted while its batch runs fails the requests that have not begun', async () => {
  const { key, data } = await keyOf();
  const mine = batchesOf(gateway, key);
  const { id } = await mine.submitted(chatBatch(slow(40)));
  await until(async () => (await ours.send('GET', `/batches/${id}`)).body.request_counts.completed > 0, 'one ran');
  assert.equal((await control.call('DELETE', `/keys/${data.hash}`)).status, 200);
  assert.equal((await mine.send('GET', `/batches/${id}`)).status, 401);
  const batch = await ours.ended(id);
  assert.equal(batch.status, 'completed');
  const types = batch.results.map(({ error }: Json) => error?.error_type ?? 'completed');
  assert.deepEqual(new Set(types), new Set(['completed', 'authentication']));
  assert.equal(batch.request_counts.completed + batch.request_counts.failed, 40);
});

test('a workspace that is deleted while its batch runs takes the batch with it, and other batches continue', async () => {
  const { id: workspace } = await control.made({ name: 'Ending', slug: 'ending' });
  const { key, data } = await keyOf({ workspace_id: workspace });
  const theirs = batchesOf(gateway, key);
  const { id } = await theirs.submitted(chatBatch(slow(40)));
  await until(async () => (await theirs.send('GET', `/batches/${id}`)).body.request_counts.completed > 0, 'one ran');
  assert.equal((await control.call('DELETE', `/keys/${data.hash}`)).status, 200);
  const gone = await control.call('DELETE', `/workspaces/${workspace}`);
  assert.equal(gone.status, 200, JSON.stringify(gone.body));
  const other = await ours.ended((await ours.submitted(chatBatch([scripted('a', { text: 'still here' })]))).id);
  assert.equal(other.results[0].response.body.choices[0].message.content, 'still here');
  const uuid = id.replace('batch_', '').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
  assert.deepEqual(await rowsOf('select position from batch_items where batch_id = $1', [uuid]), []);
  // What has run is paid.
  const rows = await rowsOf('select sum(cost_nano)::float8 as cost from generations where workspace_id = $1', [
    workspace,
  ]);
  assert.ok((rows[0]!['cost'] as number) > 0);
});
