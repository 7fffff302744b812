/** Providers whose batch interface fails: no request is lost, run twice or paid twice. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { renewClaim } from '../../src/batches/items.sql.ts';
import type { Queryable } from '../../src/storage/database.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { connect } from '../../src/testing/database/rows.ts';
import { chatReply } from '../../src/testing/upstream/answers.ts';
import type { BatchVendor, Fault } from '../../src/testing/upstream/batch-vendor.ts';
import { batchesOf, type Json } from './batches-client.ts';
import { chatAnswer, item, messageAnswer, nativeBatch, startNative } from './native.ts';

const ids = ['a', 'b', 'c', 'd'];
const requests = ids.map((id) => item(id));
const noFallback = { provider: { allow_fallbacks: false } };
const isCreation = ({ method, path }: { method: string; path: string }) => method === 'POST' && /batches$/.test(path);

/** A fault for the first `count` requests that match. */
function first(count: number, matches: (request: { method: string; path: string }) => boolean, fault: Fault) {
  let left = count;
  return (request: { method: string; path: string }) => (matches(request) && left-- > 0 ? fault : undefined);
}

const textsOf = (batch: Json) =>
  batch.results.map(({ response, error }: Json) => response?.body.choices[0].message.content ?? error.error_type);

const wanted = ids.map((id) => `re: ${id}`);

/** The vendor also answers single requests, with another text. */
function answersAlone(vendor: BatchVendor) {
  const { fault } = vendor;
  vendor.fault = (request) => {
    if (request.path !== '/chat/completions') return fault(request);
    return { status: 200, body: chatReply({ text: 'alone' }) as Json };
  };
}

test('an overloaded provider is asked again, and its batch is submitted once', async (t) => {
  const { vendor, gateway } = await startNative(t, 'openai');
  vendor.answer = chatAnswer;
  const submit = first(2, isCreation, { status: 429, headers: { 'retry-after': '1' } });
  const poll = first(2, ({ method, path }) => method === 'GET' && /^\/batches\/b/.test(path), { status: 502 });
  const upload = first(1, ({ path, method }) => method === 'POST' && path === '/files', { status: 503 });
  vendor.fault = (request) => submit(request) ?? poll(request) ?? upload(request);
  const client = batchesOf(gateway);
  const { id } = await client.submitted(nativeBatch(requests));
  const batch = await client.ended(id);
  assert.deepEqual(textsOf(batch), wanted);
  assert.equal(vendor.batches.length, 1);
});

for (const [name, make] of [
  [
    'refuses a batch',
    (vendor: BatchVendor) =>
      (vendor.fault = first(9, isCreation, { status: 400, body: { error: { message: 'no batches here' } } })),
  ],
  [
    'refuses the credential',
    (vendor: BatchVendor) => (vendor.fault = first(9, ({ path }) => path === '/files', { status: 401 })),
  ],
  [
    'fails a whole batch in its validation',
    (vendor: BatchVendor) => {
      vendor.finishes = false;
      vendor.fault = ({ method, path }) => {
        const batch = vendor.batches[0];
        if (batch !== undefined && method === 'GET' && path === `/batches/${batch.id}`) {
          Object.assign(batch, { state: 'failed', message: 'no batches here' });
        }
        return undefined;
      };
    },
  ],
] as const) {
  test(`requests of a provider that ${name} run one by one, or fail if no fallback is allowed`, async (t) => {
    const { vendor, gateway } = await startNative(t, 'openai');
    make(vendor);
    answersAlone(vendor);
    const client = batchesOf(gateway);
    const batch = await client.ended((await client.submitted(nativeBatch(requests))).id);
    assert.deepEqual(textsOf(batch), ['alone', 'alone', 'alone', 'alone']);
    vendor.batches.splice(0);
    const refused = await client.ended((await client.submitted(nativeBatch(requests, noFallback))).id);
    assert.deepEqual(refused.request_counts, { total: 4, completed: 0, failed: 4 });
    assert.deepEqual(new Set(textsOf(refused)), new Set(['provider_unavailable']));
    assert.match(
      refused.results[0].error.message,
      /did not run this request: (no batches here|the provider refuses the cred)/,
    );
    assert.equal(refused.usage, null);
    assert.deepEqual([...vendor.files.keys()], [], 'no upload stays');
    const { upstream } = (await client.send('DELETE', `/batches/${refused.id}`)).body.deletion;
    assert.equal(upstream.status, name === 'refuses the credential' ? 'not_applicable' : 'deleted');
  });
}

test('a file that cannot be removed at the provider does not keep the others there', async (t) => {
  const { vendor, gateway } = await startNative(t, 'openai');
  vendor.answer = chatAnswer;
  vendor.fault = first(1, ({ method }) => method === 'DELETE', { status: 500 });
  const client = batchesOf(gateway);
  const { id } = await client.ended((await client.submitted(nativeBatch(requests))).id);
  assert.deepEqual([...vendor.files.keys()], [vendor.batches[0]!.uploadId]);
  const { upstream } = (await client.send('DELETE', `/batches/${id}`)).body.deletion;
  assert.equal(upstream.status, 'unsupported');
});

for (const kind of ['openai', 'anthropic'] as const) {
  test(`a submission to ${kind} whose answer is lost is found again, and not made twice`, async (t) => {
    const { vendor, gateway } = await startNative(t, kind);
    vendor.answer = kind === 'openai' ? chatAnswer : messageAnswer;
    vendor.finishes = false;
    vendor.fault = first(1, isCreation, 'drop');
    // Batches of others in the same account, one of them of the same time and size.
    const foreign = vendor.create({
      marker: 'somebody',
      calls: ids.map((id) => ({ id, body: { messages: [{ content: id }] } })),
    });
    const client = batchesOf(gateway);
    const { id } = await client.submitted(nativeBatch(requests));
    await until(() => vendor.requests.some(({ path }) => /batches\/batch-\d/.test(path)), 'a batch is polled');
    vendor.finishes = true;
    const batch = await client.ended(id);
    assert.deepEqual(textsOf(batch), wanted);
    assert.equal(vendor.requests.filter(isCreation).length, 1);
    assert.ok(
      kind === 'openai' ? foreign.state === 'running' : vendor.batches.includes(foreign),
      'a foreign batch stays',
    );
  });
}

test('a submission that never reached the provider is made again, once that is certain', async (t) => {
  const { vendor, gateway } = await startNative(t, 'openai');
  vendor.answer = chatAnswer;
  vendor.fault = first(1, isCreation, 'refuse');
  const client = batchesOf(gateway);
  const { id } = await client.submitted(nativeBatch(requests));
  await until(() => vendor.requests.some(({ path }) => path.startsWith('/batches?')), 'the provider is searched');
  assert.equal(vendor.requests.filter(isCreation).length, 1);
  gateway.clock.jump(30_000);
  const batch = await client.ended(id);
  assert.deepEqual(textsOf(batch), wanted);
  assert.equal(vendor.batches.length, 1);
  assert.equal(vendor.requests.filter(({ path, method }) => method === 'POST' && path === '/files').length, 1);
});

test('results with unknown, repeated and missing ids and half a line give each request one result', async (t) => {
  const { vendor, gateway } = await startNative(t, 'openai');
  vendor.answer = chatAnswer;
  answersAlone(vendor);
  vendor.garble = (text) => {
    const lines = text.trimEnd().split('\n');
    const unknown = lines[0]!.replace(/"custom_id":"[^"]*"/, '"custom_id":"nobody"');
    // `a` comes last and is cut, `b` is missing.
    return [unknown, lines[0], lines[0], 'not JSON', lines[1], lines[3]!.slice(0, 90)].join('\n');
  };
  const client = batchesOf(gateway);
  const batch = await client.ended((await client.submitted(nativeBatch(requests))).id);
  assert.deepEqual(textsOf(batch), ['alone', 'alone', 're: c', 're: d']);
  assert.deepEqual(batch.request_counts, { total: 4, completed: 4, failed: 0 });
  const strict = await client.ended((await client.submitted(nativeBatch(requests, noFallback))).id);
  assert.deepEqual(textsOf(strict), ['provider_unavailable', 'provider_unavailable', 're: c', 're: d']);
});

test('a request that the provider refuses fails with its error, and the others are not affected', async (t) => {
  const { vendor, gateway } = await startNative(t, 'openai');
  const error = {
    error: { message: 'context too long', type: 'invalid_request_error', code: 'context_length_exceeded' },
  };
  vendor.answer = (call) => (call.body.messages[0].content === 'b' ? { status: 400, body: error } : chatAnswer(call));
  const client = batchesOf(gateway);
  const batch = await client.ended((await client.submitted(nativeBatch(requests))).id);
  assert.deepEqual(textsOf(batch), ['re: a', 'context_length_exceeded', 're: c', 're: d']);
  assert.match(batch.results[1].error.message, /context too long/);
});

for (const kind of ['openai', 'anthropic'] as const) {
  test(`what ${kind} has run before a batch expires there is kept, and the rest is named as expired`, async (t) => {
    const { vendor, gateway } = await startNative(t, kind);
    vendor.answer = kind === 'openai' ? chatAnswer : messageAnswer;
    vendor.finishes = false;
    const client = batchesOf(gateway);
    const { id } = await client.submitted(nativeBatch(requests));
    await until(() => vendor.batches[0], 'the batch is submitted');
    vendor.finish(vendor.batches[0]!, 'expired', 3);
    const batch = await client.ended(id);
    assert.deepEqual(textsOf(batch), ['re: a', 're: b', 're: c', 'timeout']);
    assert.equal(batch.results[3].error.type, 'batch_expired');
    assert.equal(batch.status, 'completed');
  });
}

test('a batch whose window ends is cancelled at the provider, and what has run is kept', async (t) => {
  const { vendor, gateway } = await startNative(t, 'openai');
  vendor.answer = chatAnswer;
  vendor.finishes = false;
  const client = batchesOf(gateway);
  const { id } = await client.submitted(nativeBatch(requests));
  await until(() => vendor.batches[0], 'the batch is submitted');
  gateway.clock.jump(24 * 3_600_000);
  const batch = await client.ended(id);
  assert.equal(batch.status, 'expired');
  assert.deepEqual(textsOf(batch), ['re: a', 're: b', 'timeout', 'timeout']);
});

test('a renewal that arrives late does not take the items from their native batch', async (t) => {
  const { vendor, gateway } = await startNative(t, 'openai');
  vendor.answer = chatAnswer;
  vendor.finishes = false;
  const client = batchesOf(gateway);
  const { id } = await client.submitted(nativeBatch(requests));
  await until(() => vendor.batches.length === 1, 'it is submitted');
  const db = await connect(gateway.target);
  t.after(() => db.end());
  const { rows } = await db.query('select id, batch_id as "batchId" from native_batches');
  const [{ id: claim, batchId }] = rows;
  const query: Queryable['query'] = async <Row>(sql: string, parameters?: unknown[]) =>
    (await db.query(sql, parameters)).rows as Row[];
  // While the items were being prepared, their claim was renewed every few seconds.
  await renewClaim({ query }, batchId, claim, new Date(gateway.clock.now() + 10_000));
  gateway.clock.jump(60_000);
  vendor.finishes = true;
  assert.deepEqual(textsOf(await client.ended(id)), wanted);
});
