import assert from 'node:assert/strict';
import test from 'node:test';
import { checkTurnEvents } from '../../testing/laws/turn-events.ts';
import { corpusMissing, recordings } from '../../testing/recordings/corpus.ts';
import type { TurnEvent } from '../conversation/conversation.ts';
import { collect } from '../conversation/replay.ts';
import { ResponsesDecoder } from './decoder.ts';

// biome-ignore lint/suspicious/noExplicitAny: events are written by hand
type Json = any;

function decode(events: readonly Json[]): TurnEvent[] {
  const decoder = new ResponsesDecoder();
  const told = events.flatMap((value) => decoder.read(value.type, JSON.stringify(value), value));
  return [...told, ...decoder.close()];
}

function recorded(name: string): Json[] {
  const found = recordings(['responses']).find((one) => one.stream && one.id.includes(name));
  assert.ok(found, name);
  return found.events.filter((event) => event.data !== '[DONE]').map((event) => JSON.parse(event.data));
}

test('a recorded stream with a server tool decodes to summary, encrypted reasoning, whole items and text', {
  skip: corpusMissing,
}, () => {
  const events = decode(recorded('thinking-with-code-execution-tool-stream'));
  const turn = collect(events);
  const [summary, ...rest] = turn.choices[0]?.parts ?? [];
  assert.ok(summary?.type === 'reasoning');
  assert.deepEqual([summary.summary, summary.text.length, summary.origin], [true, 440, 'openai-responses-v1']);
  assert.match(summary.text, /^\*\*Calculating a large integer\*\*/);
  assert.deepEqual([summary.encrypted?.length, summary.id?.startsWith('rs_')], [1764, true]);
  assert.deepEqual(
    rest.map((part) => (part.type === 'opaque' ? (part.value as Json).code : part.type)),
    ['n = pow(123456, 123)\nlen(str(n))', 'str(n)[:100], str(n)[-100:]', 'n', 'text'],
  );
  const text = rest.at(-1);
  assert.match(text?.type === 'text' ? text.text : '', /^123456\^123 equals:\n180302106304044807508140/);
  assert.deepEqual(turn.choices[0]?.finish, { unified: 'stop', native: 'completed' });
  const { native: _, ...usage } = turn.usage!;
  assert.deepEqual(usage, {
    input: 527,
    cacheRead: 3200,
    cacheWrite5m: 0,
    cacheWrite1h: 0,
    output: 347,
    reasoning: 128,
  });
  assert.deepEqual([turn.created, turn.model], [1757630616, 'gpt-5-2025-08-07']);
  assert.equal(events.at(-1)?.type, 'end');
});

test('a recorded call after reasoning keeps its call id and gets its arguments once', {
  skip: corpusMissing,
}, () => {
  const turn = collect(decode(recorded('lmstudio-tool-call')));
  const call = turn.choices[0]?.parts.at(-1);
  assert.deepEqual(call, {
    type: 'toolCall',
    id: 'call_3466696471230001',
    name: 'weather',
    arguments: '{"location":"San Francisco"}',
    extras: { responses: { id: 'fc_5ee21s0i48xzoskcmd67h' } },
  });
  assert.equal(turn.choices[0]?.parts[0]?.type, 'reasoning');
  assert.equal(turn.choices[0]?.finish.unified, 'tool_calls');
});

test('a recorded file citation is kept once, for its own format', {
  skip: corpusMissing,
}, () => {
  const parts = collect(decode(recorded('file-search-tool-2'))).choices[0]?.parts ?? [];
  const text = parts.at(-1);
  assert.ok(text?.type === 'text');
  assert.deepEqual(
    text.citations?.map((citation) => [citation.url, (citation.native?.value as Json)?.filename]),
    [[undefined, 'ai.pdf']],
  );
});

test('every recorded stream decodes to its final output', { skip: corpusMissing }, () => {
  for (const one of recordings(['responses']).filter((recording) => recording.stream && recording.status === 200)) {
    const events: Json[] = one.events.filter((event) => event.data !== '[DONE]').map((event) => JSON.parse(event.data));
    const told = decode(events);
    const last = events.findLast((event) => event.response)?.response;
    if (last.status === 'failed') {
      assert.equal(told.at(-1)?.type, 'failure', one.id);
      continue;
    }
    // One recording was shortened by hand, so its deltas differ from its final text.
    if (one.id.includes('shell-container')) continue;
    const texts = (last.output as Json[]).flatMap((item) => (item.content ?? []).map((content: Json) => content.text));
    const calls = (last.output as Json[]).filter((item) => item.call_id && 'arguments' in item);
    const parts = collect(told).choices[0]?.parts ?? [];
    if (last.output.length === 0) continue;
    assert.deepEqual(
      parts.flatMap((part) => (part.type === 'text' ? part.text : [])),
      texts.filter((text) => text !== undefined && parts.some((part) => part.type === 'text' && part.text === text)),
      one.id,
    );
    assert.deepEqual(
      parts.flatMap((part) => (part.type === 'toolCall' && !part.custom ? [[part.id, part.arguments]] : [])),
      calls.map((item) => [item.call_id, item.arguments]),
      one.id,
    );
  }
});

const head = { type: 'response.created', response: { id: 'resp_1', created_at: 1, model: 'm' } };
const ended = (more: object = {}) => ({
  type: 'response.completed',
  response: { status: 'completed', output: [], ...more },
});
const added = (index: number, callId: string) => ({
  type: 'response.output_item.added',
  output_index: index,
  item: { type: 'function_call', id: `fc_${index}`, call_id: callId, name: 't', arguments: '' },
});
const piece = (index: number, delta: string) => ({
  type: 'response.function_call_arguments.delta',
  output_index: index,
  delta,
});

test('argument fragments of two calls reach the right call in any order, even empty ones', () => {
  const turn = collect(
    decode([
      head,
      added(0, 'call_1'),
      added(1, 'call_2'),
      piece(1, '{"t":'),
      piece(0, ''),
      piece(0, '{"t":"a"}'),
      piece(1, '"b"}'),
      ended(),
    ]),
  );
  assert.deepEqual(
    turn.choices[0]?.parts.map((part) => part.type === 'toolCall' && [part.id, part.arguments]),
    [
      ['call_1', '{"t":"a"}'],
      ['call_2', '{"t":"b"}'],
    ],
  );
});

test('items missing from the stream are read from the final output, and a URL citation has its range', () => {
  const annotation = { type: 'url_citation', url: 'https://a.example', title: 'A', start_index: 0, end_index: 2 };
  const output = [
    { type: 'message', content: [{ type: 'output_text', text: 'hi', annotations: [annotation] }] },
    { type: 'image_generation_call', id: 'ig', result: 'iVBORw0KGgo=' },
  ];
  const [text, image] = collect(decode([head, ended({ output })])).choices[0]?.parts ?? [];
  const native = { origin: 'responses', value: annotation };
  assert.deepEqual(text, {
    type: 'text',
    text: 'hi',
    citations: [{ url: 'https://a.example', title: 'A', start: 0, end: 2, native }],
  });
  assert.deepEqual(image?.type === 'image' && image.source, {
    kind: 'bytes',
    mediaType: 'image/png',
    data: 'iVBORw0KGgo=',
  });
});

test('an error event, a failed response, a restart and an early end are failures', () => {
  const kind = (events: Json[]) => {
    const last = decode(events).at(-1);
    return last?.type === 'failure' && last.failure.kind;
  };
  assert.equal(kind([head, { type: 'error', error: { code: 'insufficient_quota', message: 'no' } }]), 'quota');
  assert.equal(kind([head, { type: 'error', code: 'rate_limit_exceeded', message: 'slow down' }]), 'rate_limit');
  assert.equal(
    kind([head, { type: 'response.failed', response: { error: { code: 'server_error', message: 'x' } } }]),
    'server',
  );
  assert.equal(kind([head, head]), 'malformed');
  assert.equal(kind([head, added(0, 'c')]), 'cut');
  assert.equal(kind([head, ended()]), false);
});

test('every recorded stream yields a well-formed event sequence', { skip: corpusMissing }, () => {
  for (const one of recordings(['responses']).filter((recording) => recording.stream && recording.status === 200)) {
    const values = one.events.filter((event) => event.data.startsWith('{')).map((event) => JSON.parse(event.data));
    checkTurnEvents(decode(values));
  }
});
