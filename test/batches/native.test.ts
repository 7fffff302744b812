/** Batches in the batch interfaces of providers, through a whole gateway. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { VendorRequest } from '../../src/testing/upstream/batch-vendor.ts';
import { batchesOf, type Json } from './batches-client.ts';
import { chatAnswer, halfCost, item, messageAnswer, nativeBatch, startNative } from './native.ts';

test('a batch runs in the batch interface of its provider at half the price, one row for each result', async (t) => {
  const { vendor, gateway } = await startNative(t, 'openai');
  vendor.answer = chatAnswer;
  const { submitted, ended, send } = batchesOf(gateway);
  const hostile = ['a', 'ü'.repeat(200), '"; drop', '../x', ' '];
  const made = await submitted(nativeBatch(hostile.map((id, n) => item(id, `text ${n}`))));
  const batch = await ended(made.id);
  assert.deepEqual([batch.status, batch.request_counts], ['completed', { total: 5, completed: 5, failed: 0 }]);
  assert.deepEqual(
    batch.results.map(({ custom_id: id, response }: Json) => [id, response.body.choices[0].message.content]),
    hostile.map((id, n) => [id, `re: text ${n}`]),
  );
  const texts = hostile.map((_, n) => `text ${n}`);
  assert.ok(Math.abs(batch.usage.cost - halfCost(texts)) < 1e-9, `${batch.usage.cost} ${halfCost(texts)}`);
  let cost = 0;
  for (const { response } of batch.results) {
    assert.match(response.request_id, /^gen-batch-[0-9a-f]{32}$/);
    assert.equal(response.body.id, response.request_id);
    const { body } = await send('GET', `/generation?id=${response.request_id}`);
    assert.equal(body.data.provider_name, 'Provider native');
    cost += body.data.total_cost;
  }
  assert.ok(Math.abs(batch.usage.cost - cost) < 1e-9);
  assert.equal(vendor.batches.length, 1);
  assert.ok(vendor.batches[0]!.calls.every(({ id }) => /^[A-Za-z0-9]{1,64}$/.test(id)));
  assert.ok(!vendor.requests.some(({ path }) => path.startsWith('/chat/completions')));
  assert.equal(vendor.files.size, 0, 'the upload is removed at the provider');
  assert.deepEqual((await send('DELETE', `/batches/${made.id}`)).body.deletion, {
    svc: 'deleted',
    upstream: { provider: 'Provider native', status: 'deleted' },
  });
});

test('the calls of a batch are the same as those of single requests, in every format', async (t) => {
  const { vendor, gateway } = await startNative(t, 'anthropic');
  vendor.answer = messageAnswer;
  const { submitted, ended } = batchesOf(gateway);
  const batch = await ended((await submitted(nativeBatch([item('a', 'hello', { temperature: 0.5 })]))).id);
  assert.deepEqual(batch.request_counts, { total: 1, completed: 1, failed: 0 });
  assert.equal(batch.results[0].response.body.choices[0].message.content, 're: hello');
  const [sent] = vendor.requests.filter(({ method }) => method === 'POST');
  const { requests } = JSON.parse(sent!.body.toString());
  assert.equal(requests[0].params.model, 'upstream-native');
  assert.equal(requests[0].params.temperature, 0.5);
  assert.ok(Math.abs(batch.usage.cost - halfCost(['hello'])) < 1e-9, String(batch.usage.cost));
});

test('an item with a preset, which may change meanwhile, runs one by one', async (t) => {
  const { vendor, gateway } = await startNative(t, 'openai');
  vendor.answer = chatAnswer;
  const alone = { status: 200, body: chatAnswer({ body: { messages: [{ content: 'alone' }] } }).body };
  vendor.fault = ({ path }) => (path === '/chat/completions' ? alone : undefined);
  const { submitted, ended } = batchesOf(gateway);
  assert.equal((await gateway.post('/presets/cold/chat/completions', { temperature: 0.5 })).status, 200);
  const batch = await ended((await submitted(nativeBatch([item('a'), item('b', 'hello', { preset: 'cold' })]))).id);
  assert.deepEqual(batch.request_counts, { total: 2, completed: 2, failed: 0 });
  assert.equal(vendor.batches.length, 1);
  assert.equal(vendor.batches[0]!.calls.length, 1);
  const [single] = vendor.requests.filter(({ path }) => path.endsWith('/chat/completions'));
  assert.equal(JSON.parse(single!.body.toString()).temperature, 0.5);
  const whole = nativeBatch([item('c'), item('d')]);
  const all = await ended((await submitted({ ...whole, model: `${whole.model}@preset/cold` })).id);
  assert.deepEqual(all.request_counts, { total: 2, completed: 2, failed: 0 });
  const bodies = vendor.requests.flatMap(({ path, body }) =>
    path.endsWith('/chat/completions') ? [String(body)] : [],
  );
  assert.deepEqual(
    bodies.map((body) => JSON.parse(body).temperature),
    [0.5, 0.5, 0.5],
  );
});

test('a deletion shows what the provider has kept, or that it never had anything', async (t) => {
  const { vendor, gateway } = await startNative(t, 'openai');
  const { submitted, ended, send } = batchesOf(gateway);
  const faults = {
    'the provider deletes no files': ({ method }: VendorRequest) => method === 'DELETE' && { status: 405 },
    'the provider fails to delete': ({ method }: VendorRequest) => method === 'DELETE' && { status: 403 },
    'the batch is refused and the upload removed': ({ method, path }: VendorRequest) =>
      method === 'POST' && path === '/batches' && { status: 400 },
    'the upload is refused': ({ method, path }: VendorRequest) =>
      method === 'POST' && path === '/files' && { status: 400 },
  };
  const statuses: Record<string, string> = {
    'the batch is refused and the upload removed': 'deleted',
    'the upload is refused': 'not_applicable',
  };
  vendor.answer = chatAnswer;
  for (const [name, fault] of Object.entries(faults)) {
    vendor.fault = (request) => fault(request) || undefined;
    const { id } = await submitted(nativeBatch([item('a')], { provider: { allow_fallbacks: false } }));
    await ended(id);
    const { deletion } = (await send('DELETE', `/batches/${id}`)).body;
    const status = statuses[name] ?? 'unsupported';
    assert.deepEqual(deletion, { svc: 'deleted', upstream: { provider: 'Provider native', status } }, name);
  }
});
