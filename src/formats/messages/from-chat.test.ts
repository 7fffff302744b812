/** Recorded chat streams as seen by a messages client, compared with an independent reading of the recordings. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { GatewayError } from '../../base/errors.ts';
import { parseJson } from '../../base/json.ts';
import { type ReadMessage, readMessageStream } from '../../testing/clients/messages-client.ts';
import { checkTurnEvents } from '../../testing/laws/turn-events.ts';
import { corpusMissing, type Recording, recordings } from '../../testing/recordings/corpus.ts';
import { chat } from '../chat/index.ts';
import type { TurnEvent } from '../conversation/conversation.ts';
import type { Stamp } from '../conversation/format.ts';
import { messages } from './index.ts';

const STAMP: Stamp = { id: 'gen-1', model: 'acme/large', provider: 'Acme', created: 1, usage: 'none' };

// biome-ignore lint/suspicious/noExplicitAny: recorded JSON
type Json = any;

/** Cohere uses its own format under the same name; one service sends its content as lists. */
const streams = recordings(['chat'], /^(?!cohere|mistral)/).filter((one) => one.stream && one.status === 200);

test('a recorded chat stream reaches a messages client with its text and its calls', { skip: corpusMissing }, () => {
  let complete = 0;
  for (const recording of streams) {
    const { read, events } = translate(recording);
    checkTurnEvents(events);
    const expected = readByHand(recording);
    const texts = read.content.filter((block) => block.type === 'text').map((block) => block['text']);
    assert.equal(texts.join(''), expected.text, recording.id);
    if (read.error !== undefined) continue;
    complete += 1;
    const calls = read.content.filter((block) => block.type === 'tool_use');
    assert.deepEqual(
      calls.map((block) => [block['id'], block['name'], block['input']]),
      expected.calls.map((call) => [call.id, call.name, JSON.parse(call.arguments || '{}')]),
      recording.id,
    );
    assert.equal(read.stop.stop_reason === 'tool_use', calls.length > 0, recording.id);
    if (expected.usage !== undefined) {
      const { input_tokens: input, cache_read_input_tokens: cached } = read.usage as Record<string, number>;
      const written = Number(read.usage['cache_creation_input_tokens']);
      assert.equal((input ?? 0) + (cached ?? 0) + written, expected.usage.prompt_tokens, recording.id);
    }
  }
  assert.ok(complete > 20, `${complete} of ${streams.length}`);
});

function translate(recording: Recording): { read: ReadMessage; events: TurnEvent[] } {
  const decoder = chat.decoder({});
  const encoder = messages.encoder(STAMP);
  const events = recording.events.flatMap(({ name, data }) => {
    let value: unknown;
    try {
      value = parseJson(data);
    } catch {
      value = undefined;
    }
    return decoder.read(name, data, value);
  });
  events.push(...decoder.close());
  const text = events.map((event) => encoder.event(event)).join('');
  const last = events.at(-1);
  const end =
    last?.type === 'failure'
      ? encoder.failure(new GatewayError('provider_unavailable', last.failure.message), {})
      : encoder.end({});
  return { read: readMessageStream(text + end), events };
}

/** The first choice: its joined text, its calls by id, the last usage record. */
function readByHand(recording: Recording): { text: string; calls: Json[]; usage: Json } {
  let text = '';
  const calls: Json[] = [];
  let usage: Json;
  for (const { data } of recording.events) {
    if (data === '[DONE]' || !data.startsWith('{')) continue;
    const chunk: Json = JSON.parse(data);
    usage = chunk.usage ?? chunk.x_groq?.usage ?? usage;
    const choice = (chunk.choices ?? []).find((one: Json) => (one.index ?? 0) === 0);
    if (typeof choice?.delta?.content === 'string') text += choice.delta.content;
    for (const piece of choice?.delta?.tool_calls ?? []) {
      if (piece.id && !calls.some((call) => call.id === piece.id))
        calls.push({ id: piece.id, index: piece.index, arguments: '' });
      const call =
        calls.findLast((one) => (piece.id ? one.id === piece.id : one.index === piece.index)) ?? calls.at(-1);
      call.name ??= piece.function?.name;
      call.arguments += piece.function?.arguments ?? '';
    }
  }
  return { text, calls, usage };
}
