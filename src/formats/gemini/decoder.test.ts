import assert from 'node:assert/strict';
import test from 'node:test';
import { checkTurnEvents } from '../../testing/laws/turn-events.ts';
import { corpusMissing, recordings } from '../../testing/recordings/corpus.ts';
import type { TurnEvent } from '../conversation/conversation.ts';
import { collect } from '../conversation/replay.ts';
import { GeminiDecoder } from './decoder.ts';

function decode(events: readonly unknown[], close = true): TurnEvent[] {
  const decoder = new GeminiDecoder();
  const told = events.flatMap((value) => decoder.read('', JSON.stringify(value), value));
  return close ? [...told, ...decoder.close()] : told;
}

function recorded(name: string): unknown[] {
  const found = recordings(['generate']).find((one) => one.id.includes(name));
  assert.ok(found, name);
  return found.events.map((event) => JSON.parse(event.data));
}

test('a recorded stream with streamed arguments decodes to a signed call with a generated id and counted thoughts', {
  skip: corpusMissing,
}, () => {
  const events = decode(recorded('stream-no-args-tool-call'));
  const turn = collect(events);
  const [thought, ...calls] = turn.choices[0]?.parts ?? [];
  assert.ok(thought?.type === 'reasoning' && thought.origin === 'google-gemini-v1');
  assert.match(thought.text, /^\*\*Processing User Requests\*\*\n\nI've started by understanding/);
  assert.equal(thought.text.length, 320);
  assert.deepEqual(
    calls.map((call) => call.type === 'toolCall' && [call.name, call.arguments, call.signature?.value.length]),
    [
      ['read_theme', '{}', 1060],
      ['read_screen', '{"id":"A"}', undefined],
      ['read_screen', '{"id":"B"}', undefined],
      ['read_screen', '{"id":"C"}', undefined],
    ],
  );
  assert.equal(new Set(calls.map((call) => call.type === 'toolCall' && call.id)).size, 4);
  assert.deepEqual(turn.choices[0]?.finish, { unified: 'tool_calls', native: 'STOP' });
  const { native: _, ...usage } = turn.usage!;
  assert.deepEqual(usage, { input: 249, cacheRead: 0, cacheWrite5m: 0, cacheWrite1h: 0, output: 241, reasoning: 183 });
  assert.equal(events.at(-1)?.type, 'end');
});

test('a recorded stream with a search has sources with text ranges and counts tool prompts as input', {
  skip: corpusMissing,
}, () => {
  const turn = collect(decode(recorded('web-search-tool-stream')));
  const [text, search, ...more] = turn.choices[0]?.parts ?? [];
  assert.equal(more.length, 0);
  assert.ok(search?.type === 'opaque' && search.value === undefined);
  assert.equal(search.served?.result?.pages?.[0]?.title, 'Weather information for San Francisco, CA, US');
  assert.ok(text?.type === 'text');
  assert.equal(text.citations?.length, 9);
  const [first] = text.citations ?? [];
  assert.equal(first?.title, 'Weather information for San Francisco, CA, US');
  // The service counts bytes: four degree signs before the range make it four characters shorter.
  assert.match(text.text.slice(first?.start, first?.end), /^As of Tuesday afternoon, the temperature .*\.$/);
  const { input, output, reasoning } = turn.usage!;
  assert.deepEqual([input, output, reasoning], [17 + 102, 653, 412]);
});

test('signatures after a text and built-in tool parts are kept', { skip: corpusMissing }, () => {
  const parts = collect(decode(recorded('native-output-with-builtin-tools-stream'))).choices[0]?.parts ?? [];
  assert.deepEqual(
    parts.map((part) => (part.type === 'opaque' ? Object.keys(part.value ?? part.served!) : part.type)),
    [
      ['thoughtSignature', 'toolCall'],
      ['thoughtSignature', 'toolResponse'],
      'text',
      'reasoning',
      ['id', 'tool', 'input', 'result'],
    ],
  );
  const [, , text, signature] = parts;
  assert.ok(text?.type === 'text' && text.text === '{\n  "city": "Mexico City",\n  "country": "Mexico"\n} ');
  assert.equal(text.citations?.length, 4);
  assert.equal(signature?.type === 'reasoning' && signature.signature?.length, 344);
});

test('a blocked prompt is a content filter, a stream without a finish reason is cut, an error is reported', () => {
  const blocked = decode([{ promptFeedback: { blockReason: 'SAFETY' } }]);
  assert.deepEqual(collect(blocked).choices[0]?.finish, { unified: 'content_filter', native: 'SAFETY' });
  const text = { candidates: [{ content: { parts: [{ text: 'a' }] } }] };
  const cut = decode([text]).at(-1);
  assert.equal(cut?.type === 'failure' && cut.failure.kind, 'cut');
  assert.equal(decode([]).at(-1)?.type, 'failure');
  const failed = decode([text, { error: { code: 503, message: 'overloaded', status: 'UNAVAILABLE' } }]).at(-1);
  assert.deepEqual(failed?.type === 'failure' && [failed.failure.kind, failed.failure.status], ['overloaded', 503]);
});

test('argument pieces are written at their path and nowhere else', () => {
  const call = (functionCall: unknown) => ({ candidates: [{ content: { parts: [{ functionCall }] } }] });
  const piece = (...partialArgs: unknown[]) => call({ partialArgs, willContinue: true });
  const events = decode([
    call({ name: 'f', willContinue: true }),
    piece({ jsonPath: '$.a.b[1].c', stringValue: 'x' }, { jsonPath: '$.a.b[1].c', stringValue: 'y' }),
    piece(
      { jsonPath: "$['odd key']", numberValue: 1.5 },
      { jsonPath: '$.on', boolValue: true },
      { jsonPath: '$.no', nullValue: 'NULL_VALUE' },
    ),
    piece({ jsonPath: '$.big[4000000000]', numberValue: 1 }, { jsonPath: '$.__proto__.polluted', numberValue: 1 }),
    call({}),
    { candidates: [{ finishReason: 'STOP' }] },
  ]);
  const [part] = collect(events).choices[0]?.parts ?? [];
  assert.deepEqual(part?.type === 'toolCall' && JSON.parse(part.arguments), {
    a: { b: [null, { c: 'xy' }] },
    'odd key': 1.5,
    on: true,
    no: null,
    ['__proto__']: { polluted: 1 },
  });
  assert.equal(({} as { polluted?: number }).polluted, undefined);
});

test('every recorded stream yields a well-formed event sequence', { skip: corpusMissing }, () => {
  for (const one of recordings(['generate']).filter((recording) => recording.stream && recording.status === 200)) {
    const values = one.events.filter((event) => event.data.startsWith('{')).map((event) => JSON.parse(event.data));
    checkTurnEvents(decode(values));
  }
});
