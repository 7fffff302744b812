/** Batches of xAI: only of models that take them, refusals that come with the poll, results that stay. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { VendorRequest } from '../../src/testing/upstream/batch-vendor.ts';
import { batchesOf, type Json } from './batches-client.ts';
import { chatAnswer, item, nativeBatch, startNative } from './native.ts';

const alone = { status: 200, body: chatAnswer({ body: { messages: [{ content: 'alone' }] } }).body };
const textsOf = (batch: Json) => batch.results.map(({ response }: Json) => response.body.choices[0].message.content);

test('a batch that xAI refuses after its creation runs one by one, and what xAI keeps is named', async (t) => {
  const { vendor, gateway } = await startNative(t, 'xai');
  vendor.answer = chatAnswer;
  vendor.finishes = false;
  let polls = 0;
  vendor.fault = ({ method, path }: VendorRequest) => {
    const batch = vendor.batches.at(-1);
    if (path === '/chat/completions') return alone;
    if (batch === undefined || method !== 'GET' || path !== `/batches/${batch.id}`) return undefined;
    polls += 1;
    // Until it has read the file, and when it refuses it, all counts are zero.
    const body = { batch_id: batch.id, state: { num_requests: 0, num_pending: 0 } };
    if (polls === 1) return { status: 200, body };
    const reason = 'JSONL file validation failed';
    return { status: 200, body: { ...body, cancel_time: '2026-01-01', cancel_by_xai_message: reason } };
  };
  const client = batchesOf(gateway);
  const batch = await client.ended((await client.submitted(nativeBatch([item('a'), item('b')]))).id);
  assert.deepEqual(textsOf(batch), ['re: alone', 're: alone']);
  assert.equal(polls, 2);
  assert.equal(vendor.files.size, 0);
  const { deletion } = (await client.send('DELETE', `/batches/${batch.id}`)).body;
  assert.deepEqual(deletion.upstream, { provider: 'Provider native', status: 'unsupported' });
});

test('requests for a model that takes no batches at xAI run one by one', async (t) => {
  const { vendor, gateway } = await startNative(t, 'xai', { model: { upstream_id: 'grok-4.5' } });
  vendor.fault = () => alone;
  const client = batchesOf(gateway);
  const batch = await client.ended((await client.submitted(nativeBatch([item('a')]))).id);
  assert.deepEqual(textsOf(batch), ['re: alone']);
  assert.deepEqual(
    vendor.requests.map(({ path }) => path),
    ['/chat/completions'],
  );
});
