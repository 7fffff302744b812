/** The cost of an answer that never reached its end. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type PipelineAnswer, PRICES_NANO, playThrough } from '../../testing/laws/pipeline.ts';
import {
  CHAT_DONE,
  chatChunk,
  chatFinish,
  chatUsageChunk,
  messagesStart,
  messagesText,
} from '../../testing/upstream/answers.ts';

const TEXT = 'Forty letters of an answer that goes on.';

function broken(spoken: 'chat' | 'messages', events: readonly string[]): Promise<PipelineAnswer> {
  return playThrough(
    { served: 'chat', kind: spoken, spoken, stream: true },
    { headers: { 'content-type': 'text/event-stream' }, pieces: [Buffer.from(events.join(''))], ending: 'break' },
  );
}

test('output after the only usage report, at the start, is estimated and added to it', async () => {
  const { row } = await broken('messages', [
    messagesStart({ input_tokens: 1000, cache_read_input_tokens: 50, output_tokens: 1 }),
    ...messagesText(0, TEXT),
  ]);
  assert.equal(row.estimated, true);
  const { input, cacheRead, output } = row.usage!;
  assert.deepEqual([input, cacheRead, output], [1000, 50, 1 + TEXT.length / 4]);
  const { prompt, cacheRead: cached, completion } = PRICES_NANO;
  assert.equal(row.costNano, 1000n * prompt + 50n * cached + 11n * completion);
});

test('a usage report after all of the text is used as it is', async () => {
  const { row } = await broken('chat', [
    chatChunk({ role: 'assistant', content: TEXT }),
    chatFinish(),
    chatUsageChunk({ input: 7, output: 9 }),
  ]);
  assert.equal(row.estimated, false);
  assert.equal(row.error?.type, 'provider_unavailable');
  assert.deepEqual([row.usage!.input, row.usage!.output], [7, 9]);
});

test('a complete answer is charged as reported, wherever the report was', async () => {
  const { row } = await broken('chat', [
    chatChunk({ role: 'assistant' }),
    chatUsageChunk({ input: 7, output: 9 }),
    chatChunk({ content: TEXT }),
    chatFinish(),
    CHAT_DONE,
  ]);
  assert.equal(row.estimated, false);
  assert.equal(row.error, null);
  assert.deepEqual([row.usage!.input, row.usage!.output], [7, 9]);
});

test('without any usage report everything is estimated', async () => {
  const { row } = await broken('chat', [chatChunk({ role: 'assistant', content: TEXT })]);
  assert.equal(row.estimated, true);
  assert.equal(row.usage!.output, TEXT.length / 4);
  assert.ok(row.usage!.input > 0);
});
