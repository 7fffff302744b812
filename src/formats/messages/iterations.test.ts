import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeUsage, encodeUsage } from './usage.ts';

const call = (type: string, input: number, output: number, more: Record<string, unknown> = {}) => ({
  type,
  input_tokens: input,
  output_tokens: output,
  cache_read_input_tokens: 0,
  cache_creation_input_tokens: 0,
  ...more,
});

/** The billed calls of a record with these iterations: model, input and output of each. */
function billed(input: number, output: number, iterations: unknown, more: Record<string, unknown> = {}) {
  const usage = decodeUsage({ input_tokens: input, output_tokens: output, iterations, ...more })!;
  return { usage, calls: usage.calls?.map(({ model, usage: counts }) => [model, counts.input, counts.output]) };
}

test('compactions are billed, and clients of the format see the counts of the answer alone', () => {
  const { usage, calls } = billed(682, 1320, [call('compaction', 60_385, 592), call('message', 682, 1320)]);
  assert.deepEqual([usage.input, usage.output], [61_067, 1_912]);
  assert.deepEqual(calls, [
    [undefined, 60_385, 592],
    [undefined, 682, 1320],
  ]);
  const shown = encodeUsage(usage);
  assert.deepEqual([shown['input_tokens'], shown['output_tokens']], [682, 1320]);
});

test('an advisor is billed as its own model, separate from the answering model', () => {
  const iterations = [
    call('message', 1128, 135),
    call('advisor_message', 2543, 18, { model: 'claude-opus-4-8' }),
    call('message', 1283, 10),
  ];
  const { usage, calls } = billed(2411, 145, iterations, { output_tokens_details: { thinking_tokens: 47 } });
  assert.deepEqual([usage.input, usage.output, usage.reasoning], [4_954, 163, 47]);
  assert.deepEqual(calls, [
    [undefined, 1128, 135],
    ['claude-opus-4-8', 2543, 18],
    [undefined, 1283, 10],
  ]);
});

test('calls declined before any output are free, and calls with output are billed', () => {
  const declined = call('message', 408, 0, { model: 'claude-fable-5' });
  const served = call('fallback_message', 412, 264, { model: 'claude-opus-4-8' });
  assert.deepEqual(billed(412, 264, [declined, served]).calls, [['claude-opus-4-8', 412, 264]]);
  const between = call('fallback_message', 410, 0, { model: 'claude-opus-5' });
  assert.deepEqual(billed(412, 264, [declined, between, served]).calls, [['claude-opus-4-8', 412, 264]]);
  assert.deepEqual(billed(412, 264, [{ ...declined, output_tokens: 7 }, served]).calls, [
    ['claude-fable-5', 408, 7],
    ['claude-opus-4-8', 412, 264],
  ]);
  // Nothing was declined here: the prompt was read for an empty answer.
  assert.deepEqual(billed(408, 0, [declined]).calls, [['claude-fable-5', 408, 0]]);
});

test('tokens outside the iterations are billed, and repeated ones are not billed twice', () => {
  const summary = call('compaction', 900, 90);
  assert.deepEqual(billed(1_000, 95, [summary]).calls, [
    [undefined, 900, 90],
    [undefined, 1_000, 95],
  ]);
  assert.deepEqual(billed(50, 5, [summary]).calls, [
    [undefined, 900, 90],
    [undefined, 50, 5],
  ]);
  assert.deepEqual(billed(900, 90, [summary]).calls, [[undefined, 900, 90]]);
  assert.deepEqual(billed(0, 0, [summary]).calls, [[undefined, 900, 90]]);
  assert.deepEqual(billed(60, 8, [call('message', 50, 5)]).calls, [
    [undefined, 50, 5],
    [undefined, 10, 3],
  ]);
});

test('cache writes are split as the iterations or the record say', () => {
  const written = { cache_creation_input_tokens: 100 };
  const { usage } = billed(
    10,
    4,
    [
      call('compaction', 5, 1, {
        ...written,
        cache_creation: { ephemeral_5m_input_tokens: 100, ephemeral_1h_input_tokens: 0 },
      }),
      call('message', 10, 4, written),
    ],
    { ...written, cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 100 } },
  );
  assert.deepEqual([usage.cacheWrite5m, usage.cacheWrite1h], [100, 100]);
});

test('empty or impossible iterations change nothing', () => {
  for (const iterations of [undefined, null, [], {}, 'x', [null, 3, 'message']]) {
    assert.deepEqual(billed(12, 3, iterations).calls, undefined, JSON.stringify(iterations));
  }
  const { usage } = billed(12, 3, [{ type: 'message', input_tokens: -5, output_tokens: 1e300 }]);
  assert.deepEqual([usage.input, usage.output], [12, 3]);
});
