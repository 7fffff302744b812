/** What bounds a batch: budgets, load, the window, the retention. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '../../src/testing/clock/clock.ts';
import { INFERENCE_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { chatReply, errorOf, wholeOf } from '../../src/testing/upstream/answers.ts';
import { startGuarded } from '../guardrails/guarded.ts';
import { controlOf } from '../workspaces/control.ts';
import { batchesOf, chatBatch, type Json, scripted } from './batches-client.ts';

const DAY_MS = 24 * 3_600_000;
const many = (count: number, script: object) => Array.from({ length: count }, (_, n) => scripted(`item-${n}`, script));
const typesOf = (batch: Json) => batch.results.map(({ error }: Json) => error?.error_type ?? 'completed');

test('a budget that runs out fails the remaining items and keeps what is done; then no batch is accepted', async (t) => {
  const gateway = await startGateway(t);
  const control = controlOf(gateway);
  const made = await control.call('POST', '/keys', { name: 'poor', limit: 0.0009 });
  const { submitted, ended } = batchesOf(gateway, made.body.key);
  const spending = { text: 'x', usage: { prompt_tokens: 10, completion_tokens: 10 } };
  const batch = await ended((await submitted(chatBatch(many(60, spending)))).id);
  assert.equal(batch.status, 'completed');
  const types = typesOf(batch);
  const { completed, failed } = batch.request_counts;
  assert.deepEqual(new Set(types), new Set(['completed', 'payment_required']));
  assert.deepEqual([completed + failed, types.filter((type: string) => type === 'completed').length], [60, completed]);
  assert.ok(batch.usage.cost <= 0.0009 && batch.usage.cost > 0.00027, String(batch.usage.cost));
  const { body } = await control.call('GET', `/keys/${made.body.data.hash}`);
  assert.ok(Math.abs(body.data.usage - batch.usage.cost) < 1e-9, `${body.data.usage} ${batch.usage.cost}`);
  const poor = (await control.call('POST', '/keys', { name: 'poorest', limit: 0 })).body.key;
  const other = batchesOf(gateway, poor);
  await other.refused(
    other.send('POST', '/batches', chatBatch([scripted('a')])),
    402,
    /budget of the key is exhausted/,
  );
});

test('a batch is refused if a budget cannot pay for what its preset adds to the prompts', async (t) => {
  const gateway = await startGateway(t);
  const messages = [{ role: 'system', content: 'x'.repeat(100_000) }];
  assert.equal((await gateway.post('/presets/long/chat/completions', { messages })).status, 200);
  const { key } = (await controlOf(gateway).call('POST', '/keys', { name: 'poor', limit: 0.001 })).body;
  const { send, refused } = batchesOf(gateway, key);
  const items = many(2, { text: 'x' });
  const batch = chatBatch(items);
  await refused(
    send('POST', '/batches', { ...batch, model: `${batch.model}@preset/long` }),
    402,
    /prompts of this batch cost at least/,
  );
  assert.equal((await send('POST', '/batches', batch)).status, 202);
});

test('guardrails hold for each item: a filter blocks one and redacts another, and a model that is not allowed runs none', async (t) => {
  const { gateway, guarded } = await startGuarded(t, { providers: { text: { kind: 'chat' } } });
  gateway.upstream.script('text', [{ ...wholeOf(chatReply({ text: 'yes' })), repeat: true }]);
  const item = (custom_id: string, content: string) => ({
    custom_id,
    body: { max_tokens: 9, messages: [{ role: 'user', content }] },
  });
  const requests = [item('plain', 'hello'), item('blocked', 'the word hush'), item('redacted', 'PRJ-7 is late')];
  const filters = {
    content_filters: [
      { pattern: 'hush', action: 'block' },
      { pattern: 'PRJ-[0-9]', action: 'redact' },
    ],
  };
  const filtered = batchesOf(gateway, (await guarded(filters)).token);
  const batch = await filtered.ended((await filtered.submitted(chatBatch(requests, { model: 'test/text' }))).id);
  assert.deepEqual(typesOf(batch), ['completed', 'permission_denied', 'completed']);
  const sent = gateway.upstream.requests('text').map(({ body }) => String(body));
  assert.equal(sent.length, 2);
  assert.ok(!sent.some((body) => body.includes('hush') || body.includes('PRJ-7')), sent.join());
  const closed = batchesOf(gateway, (await guarded({ allowed_models: ['test/elsewhere'] })).token);
  const answer = await closed.send('POST', '/batches', chatBatch(requests, { model: 'test/text' }));
  if (answer.status === 202) {
    const types = typesOf(await closed.ended(answer.body.id));
    assert.ok(!types.includes('completed'), types.join());
  } else assert.ok([403, 404].includes(answer.status), JSON.stringify(answer.body));
  assert.equal(gateway.upstream.requests('text').length, 2);
});

test('items that the upstream refuses for load run later, and none is lost', async (t) => {
  const gateway = await startGateway(t, { providers: { busy: {} } });
  gateway.upstream.script('busy', [
    ...Array.from({ length: 3 }, () => errorOf('chat', 429, 'slow down', { 'retry-after': '1' })),
    { ...wholeOf(chatReply({ text: 'done' })), repeat: true },
  ]);
  const { submitted, ended } = batchesOf(gateway);
  const requests = Array.from({ length: 6 }, (_, n) => ({
    custom_id: `item-${n}`,
    body: { max_tokens: 20, messages: [{ role: 'user', content: 'hi' }] },
  }));
  const made = await submitted(chatBatch(requests, { model: 'test/busy' }));
  const batch = await ended(made.id);
  assert.deepEqual(batch.request_counts, { total: 6, completed: 6, failed: 0 });
  assert.equal(gateway.upstream.requests('busy').length, 9);
});

test('a batch whose window ends expires: results so far are kept, and after the retention it is gone', async (t) => {
  const gateway = await startGateway(t, { jobs: 'now' });
  const { submitted, ended, send, refused } = batchesOf(gateway);
  const requests = [scripted('fast', { text: 'x' }), ...many(30, { text: 'slow', delay_ms: { headers: 1_000 } })];
  const { id } = await submitted(chatBatch(requests));
  await until(
    async () => (await send('GET', `/batches/${id}`)).body.request_counts.completed > 0,
    'the first item runs',
  );
  gateway.clock.jump(DAY_MS);
  const batch = await ended(id);
  assert.equal(batch.status, 'expired');
  const { completed, failed } = batch.request_counts;
  assert.ok(completed > 0 && failed > 0 && completed + failed === 31, JSON.stringify(batch.request_counts));
  assert.equal(batch.results[0].response.body.choices[0].message.content, 'x');
  assert.deepEqual([batch.results[30].error.type, batch.results[30].error.error_type], ['batch_expired', 'timeout']);
  assert.ok(batch.usage.total_tokens > 0);
  gateway.clock.jump(31 * DAY_MS);
  await until(async () => (await send('GET', `/batches/${id}`)).status === 410, 'the results are removed');
  await refused(send('GET', `/batches/${id}/results`), 410, /no longer kept/);
  assert.equal((await send('DELETE', `/batches/${id}`)).status, 200);
});

test('the key of a batch counts at the moment an item runs: once it is disabled, the rest fails', async (t) => {
  const gateway = await startGateway(t);
  const control = controlOf(gateway);
  const made = await control.call('POST', '/keys', { name: 'short-lived' });
  const mine = batchesOf(gateway, made.body.key);
  const { id } = await mine.submitted(chatBatch(many(300, { text: 'x', delay_ms: { headers: 200 } })));
  await until(async () => (await mine.send('GET', `/batches/${id}`)).body.request_counts.completed > 0, 'an item ran');
  assert.equal((await control.call('PATCH', `/keys/${made.body.data.hash}`, { disabled: true })).status, 200);
  const batch = await batchesOf(gateway, INFERENCE_KEY).ended(id);
  assert.deepEqual(new Set(typesOf(batch)), new Set(['completed', 'authentication']));
});

test('a body larger than 200 MB is refused', async (t) => {
  const gateway = await startGateway(t);
  const response = await fetch(`${gateway.api}/batches`, {
    method: 'POST',
    headers: { authorization: `Bearer ${INFERENCE_KEY}`, 'content-type': 'application/json' },
    body: Buffer.alloc(200 * 1024 * 1024 + 1, ' '),
  });
  assert.equal(response.status, 413, await response.text());
});
