/** 402 when a batch is submitted: budgets that cannot even pay for its prompts. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import { connect } from '../../src/testing/database/rows.ts';
import { type Gateway, startGateway } from '../../src/testing/gateway/gateway.ts';
import { chatReply, wholeOf } from '../../src/testing/upstream/answers.ts';
import { controlOf } from '../workspaces/control.ts';
import { batchesOf, chatBatch, type Json, scripted } from './batches-client.ts';

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  { providers: { text: {} } },
);
const control = controlOf(gateway);
gateway.upstream.script('text', [{ ...wholeOf(chatReply({ text: 'done' })), repeat: true }]);

/** At 3 USD per million tokens and ten bytes a token, 10,000 bytes cost at least 0.003 USD. */
const withPrompts = (count: number, bytes: number) =>
  chatBatch(
    Array.from({ length: count }, (_, n) => ({
      custom_id: `item-${n}`,
      body: { max_tokens: 1, messages: [{ role: 'user', content: 'x'.repeat(bytes) }] },
    })),
    { model: 'test/text' },
  );
const keyOf = async (body: object) =>
  (await control.call('POST', '/keys', { name: 'paying', ...body })).body as { key: string; data: Json };
const LEAST = /^the prompts of this batch cost at least 0\.030\d* USD, but 0\.02 USD are left in the /;

async function storedItems({ target }: Gateway): Promise<number> {
  const client = await connect(target);
  const { rows } = await client.query('select count(*)::int as count from batch_items');
  await client.end();
  return (rows[0] as { count: number }).count;
}

test('a batch whose prompts cost more than a limit, a workspace budget or the balance has left is refused with 402', async (t) => {
  const limited = batchesOf(gateway, (await keyOf({ limit: 0.02 })).key);
  const error = await limited.refused(limited.send('POST', '/batches', withPrompts(10, 10_000)), 402, LEAST);
  assert.match(error.message, /budget of the key$/);
  assert.deepEqual(
    [error.metadata.error_type, error.metadata.budget.scope, error.metadata.left_usd],
    ['payment_required', 'key', 0.02],
  );
  assert.equal(await storedItems(gateway), 0);
  // Prompts that may have a token a byte are too expensive to begin, and end one after the other.
  const bold = await limited.ended((await limited.submitted(withPrompts(2, 10_000))).id);
  assert.deepEqual(
    bold.results.map(({ error: { error_type: type } }: Json) => type),
    ['payment_required', 'payment_required'],
  );

  const { id: workspace } = await control.made({ name: 'Paying', slug: 'paying' });
  assert.equal((await control.call('PUT', '/workspaces/paying/budgets/lifetime', { limit_usd: 0.02 })).status, 200);
  const inside = batchesOf(gateway, (await keyOf({ workspace_id: workspace })).key);
  await inside.refused(inside.send('POST', '/batches', withPrompts(10, 10_000)), 402, LEAST);

  const poor = await startGateway(t, { providers: { text: {} }, yaml: { account: { balance_usd: 0.02 } } });
  const there = batchesOf(poor);
  const refusal = await there.refused(there.send('POST', '/batches', withPrompts(10, 10_000)), 402, LEAST);
  assert.match(refusal.message, /account balance$/);
});

test('a daily limit counts twice, because a new day begins before the batch expires', async () => {
  const daily = batchesOf(gateway, (await keyOf({ limit: 0.02, limit_reset: 'daily' })).key);
  assert.equal((await daily.send('POST', '/batches', withPrompts(10, 10_000))).status, 202);
  await daily.refused(daily.send('POST', '/batches', withPrompts(20, 10_000)), 402, /but 0\.0[34]\d* USD are left/);
});

test('the models of a message batch are summed, and a client of Anthropic gets its billing error', async () => {
  const { key } = await keyOf({ limit: 0.02 });
  const client = new Anthropic({ baseURL: gateway.url, apiKey: key, authToken: null, maxRetries: 0 });
  const requests = ['test/text', 'simulated/echo'].map((model) => ({
    custom_id: model,
    params: { model, max_tokens: 1, messages: [{ role: 'user' as const, content: 'x'.repeat(100_000) }] },
  }));
  await assert.rejects(
    client.messages.batches.create({ requests }),
    (error: InstanceType<typeof Anthropic.APIError>) => {
      assert.equal(error.status, 402);
      assert.equal((error.error as Json).error.type, 'billing_error');
      assert.match(error.message, /the prompts of this batch cost at least 0\.04/);
      return true;
    },
  );
});

test('batches and other requests that are sent at once never spend more than the limit, and each batch ends', async () => {
  const { key, data } = await keyOf({ limit: 0.05 });
  const { send, ended } = batchesOf(gateway, key);
  const interactive = { model: 'test/text', max_tokens: 1, messages: [{ role: 'user', content: 'x'.repeat(4_000) }] };
  const answers = await Promise.all(
    Array.from({ length: 12 }, (_, n) => {
      if (n % 3 === 2) return send('POST', '/chat/completions', interactive);
      return send('POST', '/batches', withPrompts(n + 1, n % 2 === 0 ? 4_000 : 16_000));
    }),
  );
  const accepted: string[] = [];
  for (const [n, { status, body }] of answers.entries()) {
    assert.ok([200, 202, 402].includes(status), `${n}: ${status} ${JSON.stringify(body)}`);
    if (status === 202) accepted.push(body.id);
  }
  // It costs at least 0.0528 USD.
  const big = await send('POST', '/batches', withPrompts(11, 16_000));
  assert.equal(big.status, 402, JSON.stringify(big.body));
  let spent = 0;
  for (const id of accepted) {
    const batch = await ended(id);
    assert.equal(batch.status, 'completed');
    const types = new Set(batch.results.map(({ error }: Json) => error?.error_type ?? 'completed'));
    for (const type of types) assert.ok(type === 'completed' || type === 'payment_required', String(type));
    spent += batch.usage?.cost ?? 0;
  }
  const { usage } = (await control.call('GET', `/keys/${data.hash}`)).body.data;
  assert.ok(usage <= 0.05 && usage >= spent - 1e-9, `${usage} ${spent}`);
});

test('a key without a limit submits whatever it costs', async () => {
  const { key } = await keyOf({});
  const { submitted, ended } = batchesOf(gateway, key);
  const batch = await ended((await submitted(chatBatch([scripted('a', { text: 'x' })]))).id);
  assert.equal(batch.status, 'completed');
});

test('a request that fits into no context fails alone, wherever it is, and its prompt need not be paid', async () => {
  const { key } = await keyOf({ limit: 0.5 });
  const { submitted, ended } = batchesOf(gateway, key);
  const [short, long] = [100, 2_100_000];
  for (const lengths of [[long, short, long, short], [short, long], [long]]) {
    const requests = lengths.map((bytes, n) => ({ ...withPrompts(1, bytes).requests[0]!, custom_id: `item-${n}` }));
    const batch = await ended((await submitted(chatBatch(requests, { model: 'test/text' }))).id);
    assert.equal(batch.status, 'completed');
    const seen = batch.results.map(({ custom_id: id, error }: Json) => [id, error?.error_type, error?.message]);
    for (const [n, [id, type, message]] of seen.entries()) {
      assert.deepEqual([id, type], [`item-${n}`, lengths[n] === long ? 'context_length_exceeded' : undefined]);
      if (type !== undefined) assert.match(message, /the prompt has about \d+ tokens > 200000/);
    }
  }
});
