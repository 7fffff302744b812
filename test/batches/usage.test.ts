/** The usage of a batch is the sum of its rows in the ledger. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import fc from 'fast-check';
import { until } from '../../src/testing/clock/clock.ts';
import { connect } from '../../src/testing/database/rows.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { chatReply, errorOf, messagesReply, wholeOf } from '../../src/testing/upstream/answers.ts';
import { batchesOf, type Json } from './batches-client.ts';

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  { providers: { native: { kind: 'messages' }, text: { kind: 'openrouter' } } },
);
const { submitted, ended } = batchesOf(gateway);

const count = fc.oneof(fc.constant(0), fc.nat(5_000));
const messagesUsage = fc.record({
  // Without these two counts an answer is metered by its bytes.
  input_tokens: fc.integer({ min: 1, max: 5_000 }),
  output_tokens: fc.integer({ min: 1, max: 5_000 }),
  cache_read_input_tokens: count,
  cache_creation_input_tokens: fc.constant(0),
  cache_creation: fc.record({ ephemeral_5m_input_tokens: count, ephemeral_1h_input_tokens: count }),
  server_tool_use: fc.record({ web_search_requests: fc.nat(3) }),
});
const chatUsage = fc
  .record({
    prompt_tokens: fc.integer({ min: 3_000, max: 9_000 }),
    completion_tokens: fc.integer({ min: 600, max: 5_000 }),
    prompt_tokens_details: fc.record({ cached_tokens: fc.nat(1_000), audio_tokens: fc.nat(500) }),
    completion_tokens_details: fc.record({ reasoning_tokens: fc.nat(300), audio_tokens: fc.nat(200) }),
    server_tool_use: fc.record({ tool_calls_requested: fc.nat(4), tool_calls_executed: fc.nat(4) }),
  })
  .map((usage) => ({ ...usage, total_tokens: usage.prompt_tokens + usage.completion_tokens }));

async function rowsOf(ids: readonly string[]) {
  const client = await connect(gateway.target);
  try {
    const { rows } = await client.query(
      `select count(*)::int as rows, sum(cost_nano)::float8 / 1e9 as cost,
          sum(input_tokens + cache_read_tokens + cache_write_5m_tokens + cache_write_1h_tokens)::float8 as prompt,
          sum(output_tokens)::float8 as completion, sum(cache_read_tokens)::float8 as cached,
          sum(cache_write_5m_tokens)::float8 as write_5m, sum(cache_write_1h_tokens)::float8 as write_1h,
          sum(reasoning_tokens)::float8 as reasoning,
          coalesce(sum((usage_details ->> 'webSearches')::float8), 0) as searches,
          coalesce(sum((usage_details ->> 'inputAudio')::float8), 0) as audio_in,
          coalesce(sum((usage_details ->> 'outputAudio')::float8), 0) as audio_out
        from generations where id = any($1)`,
      [ids],
    );
    return rows[0] as Record<string, number>;
  } finally {
    await client.end();
  }
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
const near = (one: number, other: number) => Math.abs(one - other) < 1e-9;
const ITEMS = 30;

/** Runs a batch whose requests have these answers, in any order, and compares its usage with the ledger. */
async function compared(endpoint: string, model: string, answers: readonly object[]): Promise<Json> {
  const [, provider] = model.split('/');
  gateway.upstream.script(provider!, answers as never);
  const requests = answers.map((_, n) => ({
    custom_id: `item-${n}`,
    body: { max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] },
  }));
  const batch = await ended((await submitted({ endpoint, model, requests })).id);
  assert.equal(batch.status, 'completed');
  const bodies = batch.results.flatMap(({ response }: Json) => response?.body ?? []);
  // The ledger is written in the background.
  const rows = await until(async () => {
    const found = await rowsOf(bodies.map(({ id }: Json) => id));
    return found['rows'] === batch.request_counts.completed ? found : undefined;
  }, 'the rows are in the ledger');
  const { usage } = batch;
  assert.deepEqual(
    {
      prompt: usage.prompt_tokens,
      completion: usage.completion_tokens,
      cached: usage.prompt_tokens_details.cached_tokens,
      write_5m: usage.cache_creation.ephemeral_5m_input_tokens,
      write_1h: usage.cache_creation.ephemeral_1h_input_tokens,
      reasoning: usage.completion_tokens_details.reasoning_tokens,
      searches: usage.server_tool_use.web_search_requests,
      audio_in: usage.prompt_tokens_details.audio_tokens,
      audio_out: usage.completion_tokens_details.audio_tokens,
    },
    Object.fromEntries(Object.entries(rows).filter(([name]) => name !== 'rows' && name !== 'cost')),
  );
  assert.equal(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens);
  assert.ok(near(usage.cost, rows['cost']!) && usage.cost > 0, `${usage.cost} ${rows['cost']}`);
  const details = bodies.map((body: Json) => body.usage.cost_details);
  for (const member of ['upstream_inference_prompt_cost', 'upstream_inference_completions_cost']) {
    const expected = sum(details.map((each: Json) => each[member]));
    assert.ok(near(usage.cost_details[member], expected) && expected > 0, `${member} ${expected}`);
  }
  assert.deepEqual([usage.is_byok, usage.cost_details.upstream_inference_cost], [false, null]);
  return usage;
}

test('whatever the requests of a batch used, its usage is the sum of their rows: messages', async () => {
  const usages = fc.sample(messagesUsage, ITEMS);
  const answers = usages.map((usage) =>
    wholeOf({ ...messagesReply({ text: 'x' }), usage: { ...usage, service_tier: 'standard' } }),
  );
  const failing = Array.from({ length: 3 }, () => errorOf('messages', 400, 'no'));
  const usage = await compared('/v1/messages', 'test/native', [
    ...answers.slice(0, 9),
    ...failing,
    ...answers.slice(9),
  ]);
  assert.deepEqual([usage.service_tier, usage.speed], ['standard', 'standard']);
  const read = sum(usages.map((each) => each.cache_read_input_tokens));
  const { ephemeral_5m_input_tokens: short, ephemeral_1h_input_tokens: long } = usage.cache_creation;
  assert.deepEqual(usage.iterations, [
    {
      type: 'message',
      input_tokens: sum(usages.map((each) => each.input_tokens)),
      output_tokens: sum(usages.map((each) => each.output_tokens)),
      cache_read_input_tokens: read,
      cache_creation_input_tokens: short + long,
      cache_creation: usage.cache_creation,
    },
  ]);
});

test('whatever the requests of a batch used, its usage is the sum of their rows: chat, with different tiers', async () => {
  const usages = fc.sample(chatUsage, ITEMS);
  const answers = usages.map((usage, n) =>
    wholeOf({ ...chatReply({ text: 'x' }), usage, service_tier: n % 2 === 0 ? 'default' : 'flex' }),
  );
  const usage = await compared('/v1/chat/completions', 'test/text', answers);
  assert.deepEqual([usage.service_tier, usage.speed, usage.iterations], [null, undefined, undefined]);
  const { tool_calls_requested: requested, tool_calls_executed: executed } = usage.server_tool_use;
  assert.deepEqual(
    [requested, executed],
    [
      sum(usages.map((each) => each.server_tool_use.tool_calls_requested)),
      sum(usages.map((each) => each.server_tool_use.tool_calls_executed)),
    ],
  );
});
