/** Rules that hold for requests in batch interfaces of providers as for any others. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { KINDS } from '../../src/providers/index.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { connect } from '../../src/testing/database/rows.ts';
import { INFERENCE_KEY, PRICING } from '../../src/testing/gateway/gateway.ts';
import { chatReply, wholeOf } from '../../src/testing/upstream/answers.ts';
import { BatchVendor } from '../../src/testing/upstream/batch-vendor.ts';
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
  await until(() => vendor.batches[0], 'the batch is submitted');
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
  const whole = await rich.ended((await rich.submitted(nativeBatch(requests))).id);
  assert.deepEqual(whole.request_counts, { total: 25, completed: 25, failed: 0 });
  assert.ok(vendor.batches.length > 1, 'they go in several batches');
  assert.ok(
    Math.abs(whole.usage.cost - halfCost(requests.map(() => 'x'.repeat(100)))) < 1e-9,
    String(whole.usage.cost),
  );
  const little = (await control.call('POST', '/keys', { name: 'little', limit: 0.002 })).body.key;
  const poor = batchesOf(gateway, little);
  const cut = await poor.ended((await poor.submitted(nativeBatch(requests))).id);
  assert.deepEqual(new Set(typesOf(cut)), new Set(['completed', 'payment_required']));
  assert.ok(cut.usage.cost <= 0.002, String(cut.usage.cost));
});

test('guardrails and logging hold: blocked requests never leave, redacted ones leave and are logged redacted, answers too', async (t) => {
  const vendor = await new BatchVendor('openai').listen();
  t.after(() => vendor.close());
  vendor.answer = chatAnswer;
  const { gateway, guarded } = await startGuarded(t, {
    providers: { native: { kind: 'openai', base_url: vendor.url } },
    yaml: { io_logging: { enabled: true } },
  });
  const filters = {
    content_filters: [
      { pattern: 'hush', action: 'block' },
      { pattern: 'PRJ-[0-9]', action: 'redact', apply_to: ['request', 'response'] },
    ],
  };
  const client = batchesOf(gateway, (await guarded(filters)).token);
  vendor.answer = (call) => {
    const answer = chatAnswer(call);
    if (call.body.messages[0].content === 'tell') answer.body.choices[0]!.message.content = 'PRJ-8 is done';
    return answer;
  };
  const requests = [
    item('plain', 'hello'),
    item('blocked', 'the word hush'),
    item('redacted', 'PRJ-7 is late'),
    item('told', 'tell'),
  ];
  const batch = await client.ended((await client.submitted(nativeBatch(requests))).id);
  assert.deepEqual(typesOf(batch), ['completed', 'permission_denied', 'completed', 'completed']);
  assert.equal(vendor.batches.length, 1);
  const logged = async (at: number) => {
    const path = `/generation/content?id=${batch.results[at].response.request_id}`;
    const { data } = await until(async () => {
      const { status, body } = await client.send('GET', path);
      return status === 200 ? body : undefined;
    }, 'the contents are logged');
    return { input: data.input.messages[0].content, output: data.output.completion };
  };
  assert.deepEqual(await logged(0), { input: 'hello', output: 're: hello' });
  const [redacted, told] = [await logged(2), await logged(3)];
  assert.ok(!JSON.stringify([redacted, told]).includes('PRJ-'), JSON.stringify([redacted, told]));
  assert.match(redacted.input, /is late$/);
  assert.match(told.output, /is done$/);
  assert.equal(batch.results[3].response.body.choices[0].message.content, told.output);
  const sent = vendor.requests.map(({ body }) => String(body)).join('\n');
  assert.ok(!sent.includes('hush') && !sent.includes('PRJ-7') && sent.includes('hello'), sent);
  const { body } = await client.send('GET', `/generation?id=${batch.results[2].response.request_id}`);
  assert.ok(body.data.guardrails.length > 0, JSON.stringify(body.data.guardrails));
});

test('a key that may no longer be used gets no results, and what has run is in the ledger', async (t) => {
  const { vendor, gateway } = await startNative(t, 'openai');
  vendor.answer = chatAnswer;
  vendor.finishes = false;
  const control = controlOf(gateway);
  const made = await control.call('POST', '/keys', { name: 'ends' });
  const { id } = await batchesOf(gateway, made.body.key).submitted(nativeBatch([item('a'), item('b')]));
  await until(() => vendor.batches[0], 'the batch is submitted');
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

test("a workspace's own credential is used for its batches, and credits pay nothing", async (t) => {
  const { vendor, gateway } = await startNative(t, 'openai');
  vendor.answer = chatAnswer;
  const control = controlOf(gateway);
  const made = await control.call('POST', '/byok', { provider: 'native', key: 'own-key-of-the-workspace' });
  assert.equal(made.status, 201, JSON.stringify(made.body));
  const client = batchesOf(gateway);
  const batch = await client.ended((await client.submitted(nativeBatch([item('a'), item('b')]))).id);
  assert.deepEqual(typesOf(batch), ['completed', 'completed']);
  assert.deepEqual(
    new Set(vendor.requests.map(({ headers }) => headers.authorization)),
    new Set(['Bearer own-key-of-the-workspace']),
  );
  assert.deepEqual([batch.usage.cost, batch.usage.is_byok], [0, true]);
  const { body } = await client.send('GET', `/generation?id=${batch.results[0].response.request_id}`);
  assert.ok(Math.abs(body.data.upstream_inference_cost - halfCost(['a'])) < 1e-9, JSON.stringify(body.data));
});

test('items of several models go to the batch of their provider each, and those without one run alone', async (t) => {
  const vendor = await new BatchVendor('openai').listen();
  t.after(() => vendor.close());
  vendor.answer = chatAnswer;
  const { gateway } = await startNative(t, 'openai', {
    providers: { other: { kind: 'openai', base_url: vendor.url }, alone: {} },
  });
  gateway.upstream.script('alone', { ...wholeOf(chatReply({ text: 'alone' })), repeat: true });
  const client = batchesOf(gateway);
  const lines = ['other', 'alone', 'other', 'alone', 'other'].map((name, n) => ({
    custom_id: `i${n}`,
    method: 'POST',
    url: '/v1/chat/completions',
    body: { ...item(`i${n}`).body, model: `test/${name}` },
  }));
  const form = new FormData();
  form.set('purpose', 'batch');
  form.set('file', new Blob([lines.map((line) => JSON.stringify(line)).join('\n')]), 'input.jsonl');
  const headers = { authorization: `Bearer ${INFERENCE_KEY}` };
  const upload = await fetch(`${gateway.api}/files`, { method: 'POST', headers, body: form });
  const { id: file } = (await upload.json()) as Json;
  const made = await client.send('POST', '/batches', {
    input_file_id: file,
    endpoint: '/v1/chat/completions',
    completion_window: '24h',
  });
  assert.equal(made.status, 200, JSON.stringify(made.body));
  const batch = await client.ended(made.body.id);
  assert.equal(batch.status, 'completed');
  assert.equal(batch.request_counts.completed, 5);
  assert.deepEqual(
    vendor.batches.map(({ calls }) => calls.length),
    [3],
  );
  assert.equal(gateway.upstream.requests('alone').length, 2);
});

test('a batch larger than the provider takes is split, by number and by size, and no request is lost', async (t) => {
  const { batches } = KINDS.find(({ id }) => id === 'openai')!;
  const { limits } = batches!;
  t.after(() => {
    batches!.limits = limits;
  });
  batches!.limits = { items: 7, bytes: 2_000, least: 2 };
  const { vendor, gateway } = await startNative(t, 'openai');
  vendor.answer = chatAnswer;
  vendor.fault = ({ path }) =>
    path === '/chat/completions'
      ? { status: 200, body: chatAnswer({ body: { messages: [{ content: 'alone' }] } }).body }
      : undefined;
  const client = batchesOf(gateway);
  const sizes = [...Array.from({ length: 15 }, () => 5), ...Array.from({ length: 5 }, () => 700), 3_000];
  const requests = sizes.map((size, n) => item(`i${n}`, 'x'.repeat(size)));
  const batch = await client.ended((await client.submitted(nativeBatch(requests))).id);
  assert.equal(batch.request_counts.completed, sizes.length);
  const texts = batch.results.map(({ response }: Json) => response.body.choices[0].message.content);
  const isAlone = (text: string) => text === 're: alone';
  assert.deepEqual(
    texts.filter((text: string) => !isAlone(text)),
    sizes.filter((_, n) => !isAlone(texts[n])).map((size) => `re: ${'x'.repeat(size)}`),
  );
  assert.ok(isAlone(texts.at(-1)), 'one request is larger than an upload may be');
  for (const { calls } of vendor.batches) assert.ok(calls.length >= 2 && calls.length <= 7, String(calls.length));
  const uploads = vendor.requests.filter(({ path, method }) => method === 'POST' && path === '/files');
  assert.ok(uploads.every(({ body }) => body.length < 2_600));
  assert.ok(vendor.batches.length >= 4);
});
