/** Rules that hold for requests in batch interfaces of providers as for any others. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { until } from '../../src/testing/clock/clock.ts';
import { connect } from '../../src/testing/database/rows.ts';
import { PRICING } from '../../src/testing/gateway/gateway.ts';
import { startGuarded } from '../guardrails/guarded.ts';
import { controlOf } from '../workspaces/control.ts';
import { batchesOf, type Json } from './batches-client.ts';
import { chatAnswer, halfCost, item, nativeBatch, startNative } from './native.ts';

const typesOf = (batch: Json) => batch.results.map(({ error }: Json) => error?.error_type ?? 'completed');

test('the ledger has what the provider reports at the batch price, each result once, whatever the answers', async (t) => {
  const { vendor, gateway } = await startNative(t, 'openai', {
    model: { batch_pricing: { prompt: '0.000001', completion: '0.000002', input_cache_read: '0.0000005' } },
  });
  const client = batchesOf(gateway);
  const db = await connect(gateway.target);
  t.after(() => db.end());
  const usage = fc.record({
    prompt: fc.nat(5000),
    cached: fc.nat(5000),
    completion: fc.integer({ min: 1, max: 5000 }),
  });
  const outcome = fc.oneof({ weight: 4, arbitrary: usage }, { weight: 1, arbitrary: fc.constant(null) });
  await fc.assert(
    fc.asyncProperty(fc.array(outcome, { minLength: 1, maxLength: 30 }), async (outcomes) => {
      vendor.answer = (call) => {
        const said = outcomes[Number(call.body.messages[0].content)];
        if (said == null) return { status: 400, body: { error: { message: 'no' } } };
        const prompt = said.prompt + said.cached + 1;
        const answer = chatAnswer(call);
        const details = { prompt_tokens_details: { cached_tokens: said.cached } };
        answer.body.usage = {
          prompt_tokens: prompt,
          completion_tokens: said.completion,
          total_tokens: 0,
          ...details,
        } as Json;
        return answer;
      };
      const made = await client.submitted(nativeBatch(outcomes.map((_, n) => item(`i${n}`, String(n)))));
      const batch = await client.ended(made.id);
      const done = outcomes.filter((said) => said !== null);
      assert.deepEqual(batch.request_counts, {
        total: outcomes.length,
        completed: done.length,
        failed: outcomes.length - done.length,
      });
      const nano = done.reduce(
        (sum, { prompt, cached, completion }) => sum + (prompt + 1) * 1000 + cached * 500 + completion * 2000,
        0,
      );
      const ids = batch.results.flatMap(({ response }: Json) => response?.request_id ?? []);
      const { rows } = await db.query(
        'select count(*)::int as count, coalesce(sum(cost_nano), 0)::float8 as nano from generations where id = any($1::text[])',
        [ids],
      );
      assert.deepEqual(rows, [{ count: done.length, nano }]);
      assert.ok(Math.abs((batch.usage?.cost ?? 0) - nano / 1e9) < 1e-9);
    }),
    { numRuns: 4 },
  );
});

test('a budget reserves the bounds of a batch until its results arrive, and then has their cost', async (t) => {
  const { vendor, gateway } = await startNative(t, 'openai');
  vendor.answer = chatAnswer;
  vendor.finishes = false;
  const control = controlOf(gateway);
  const made = await control.call('POST', '/keys', { name: 'limited', limit: 0.04 });
  const client = batchesOf(gateway, made.body.key);
  // Each may cost 20 output tokens and its prompt at half the price; all of them more than half of the limit.
  const requests = Array.from({ length: 25 }, (_, n) => item(`i${n}`, 'x'.repeat(100)));
  const { id } = await client.submitted(nativeBatch(requests));
  await until(() => vendor.batches[0], 'the batch is submitted', 20_000);
  const ask = () =>
    client.send('POST', '/chat/completions', {
      model: 'test/native',
      max_tokens: 1200,
      messages: [{ role: 'user', content: 'hi' }],
    });
  const refused = await ask();
  assert.equal(refused.status, 402, JSON.stringify(refused.body));
  vendor.finishes = true;
  const batch = await client.ended(id);
  assert.deepEqual(batch.request_counts, { total: 25, completed: 25, failed: 0 });
  const cost = halfCost(requests.map(() => 'x'.repeat(100)));
  assert.ok(Math.abs(batch.usage.cost - cost) < 1e-9);
  const { body } = await control.call('GET', `/keys/${made.body.data.hash}`);
  assert.ok(Math.abs(body.data.usage - cost) < 1e-9, `${body.data.usage} ${cost}`);
  const answered = await ask();
  assert.notEqual(answered.status, 402, JSON.stringify(answered.body));
  const db = await connect(gateway.target);
  const { rows } = await db.query(
    'select (select count(*)::int from spend_holds) as holds, (select count(*)::int from native_batches) as parts',
  );
  await db.end();
  assert.deepEqual(rows, [{ holds: 0, parts: 0 }]);
});

test('requests that a budget cannot carry with the others wait for them, and fail with payment_required at its end', async (t) => {
  const { vendor, gateway } = await startNative(t, 'openai');
  vendor.answer = chatAnswer;
  vendor.fault = ({ path }) =>
    path === '/chat/completions'
      ? { status: 200, body: chatAnswer({ body: { messages: [{ content: 'x'.repeat(30) }] } }).body }
      : undefined;
  const control = controlOf(gateway);
  const requests = Array.from({ length: 25 }, (_, n) => item(`i${n}`, 'x'.repeat(100)));
  const enough = (await control.call('POST', '/keys', { name: 'enough', limit: 0.01 })).body.key;
  const rich = batchesOf(gateway, enough);
  const whole = await rich.ended((await rich.submitted(nativeBatch(requests))).id, 60_000);
  assert.deepEqual(whole.request_counts, { total: 25, completed: 25, failed: 0 });
  assert.ok(vendor.batches.length > 1, 'they go in several batches');
  assert.ok(
    Math.abs(whole.usage.cost - halfCost(requests.map(() => 'x'.repeat(100)))) < 1e-9,
    String(whole.usage.cost),
  );
  const little = (await control.call('POST', '/keys', { name: 'little', limit: 0.002 })).body.key;
  const poor = batchesOf(gateway, little);
  const cut = await poor.ended((await poor.submitted(nativeBatch(requests))).id, 60_000);
  assert.deepEqual(new Set(typesOf(cut)), new Set(['completed', 'payment_required']));
  assert.ok(cut.usage.cost <= 0.002, String(cut.usage.cost));
});

test('guardrails hold: blocked requests never leave, redacted ones leave redacted, and answers are filtered', async (t) => {
  const { BatchVendor } = await import('../../src/testing/upstream/batch-vendor.ts');
  const vendor = await new BatchVendor('openai').listen();
  t.after(() => vendor.close());
  vendor.answer = chatAnswer;
  const { gateway, guarded } = await startGuarded(t, {
    providers: { native: { kind: 'openai', base_url: vendor.url } },
  });
  const filters = {
    content_filters: [
      { pattern: 'hush', action: 'block' },
      { pattern: 'PRJ-[0-9]', action: 'redact' },
    ],
  };
  const client = batchesOf(gateway, (await guarded(filters)).token);
  const requests = [item('plain', 'hello'), item('blocked', 'the word hush'), item('redacted', 'PRJ-7 is late')];
  const batch = await client.ended((await client.submitted(nativeBatch(requests))).id);
  assert.deepEqual(typesOf(batch), ['completed', 'permission_denied', 'completed']);
  const sent = vendor.requests.map(({ body }) => String(body)).join('\n');
  assert.ok(!sent.includes('hush') && !sent.includes('PRJ-7') && sent.includes('hello'), sent);
  const { body } = await client.send('GET', `/generation?id=${batch.results[2].response.request_id}`);
  assert.equal(body.data.guardrails.length, 1, JSON.stringify(body.data.guardrails));
});

test('a key that may no longer be used gets no results, and what has run is in the ledger', async (t) => {
  const { vendor, gateway } = await startNative(t, 'openai');
  vendor.answer = chatAnswer;
  vendor.finishes = false;
  const control = controlOf(gateway);
  const made = await control.call('POST', '/keys', { name: 'ends' });
  const { id } = await batchesOf(gateway, made.body.key).submitted(nativeBatch([item('a'), item('b')]));
  await until(() => vendor.batches[0], 'the batch is submitted', 20_000);
  assert.equal((await control.call('PATCH', `/keys/${made.body.data.hash}`, { disabled: true })).status, 200);
  vendor.finishes = true;
  const batch = await batchesOf(gateway).ended(id);
  assert.deepEqual(typesOf(batch), ['authentication', 'authentication']);
  assert.ok(Math.abs(batch.usage.cost - halfCost(['a', 'b'])) < 1e-9);
  const { body } = await control.call('GET', `/keys/${made.body.data.hash}`);
  assert.ok(Math.abs(body.data.usage - batch.usage.cost) < 1e-9);
});

test('zero data retention, and a provider whose interface is turned off, mean one by one', async (t) => {
  for (const options of [
    {
      model: { data_policy: { zdr: true, trains: false, publishes: false, retains_for_safety: false } },
      yaml: { account: { zdr: true } },
    },
    { provider: { batches: false } },
  ]) {
    const { vendor, gateway } = await startNative(t, 'openai', options);
    vendor.fault = ({ path }) =>
      path === '/chat/completions'
        ? { status: 200, body: chatAnswer({ body: { messages: [{ content: 'alone' }] } }).body }
        : undefined;
    const client = batchesOf(gateway);
    const batch = await client.ended((await client.submitted(nativeBatch([item('a')]))).id);
    assert.equal(batch.results[0].response.body.choices[0].message.content, 're: alone');
    assert.ok(batch.usage.cost > 8 * Number(PRICING.prompt));
    assert.equal(vendor.batches.length, 0);
  }
});
