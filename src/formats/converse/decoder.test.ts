/** Replies in the converse format, streamed and complete. Expectations follow the vendor documentation. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TurnEvent } from '../conversation/conversation.ts';
import { collect, eventsOf } from '../conversation/replay.ts';
import { converse } from './index.ts';

// biome-ignore lint/suspicious/noExplicitAny: events are written freely
type Json = any;

/** Each event is `[type, payload]`; the stream then closes unless stated otherwise. */
function read(events: readonly (readonly [string, Json])[], closes = true): TurnEvent[] {
  const decoder = converse.decoder({});
  const told = events.flatMap(([name, value]) => decoder.read(name, JSON.stringify(value), value));
  return closes ? [...told, ...decoder.close()] : told;
}

const START = ['messageStart', { role: 'assistant' }] as const;
const text = (at: number, said: string) =>
  ['contentBlockDelta', { contentBlockIndex: at, delta: { text: said } }] as const;
const blockStop = (at: number) => ['contentBlockStop', { contentBlockIndex: at }] as const;
const stop = (stopReason: string, more = {}) => ['messageStop', { stopReason, ...more }] as const;
const USAGE = { inputTokens: 10, outputTokens: 5, totalTokens: 15, cacheReadInputTokens: 3, cacheWriteInputTokens: 2 };
const METADATA = ['metadata', { usage: USAGE, metrics: { latencyMs: 1 } }] as const;

const failureOf = (events: readonly TurnEvent[]) => {
  const last = events.at(-1)!;
  assert.equal(last.type, 'failure');
  return last.type === 'failure' ? last.failure : undefined;
};

test('signed thinking, text and a call are separate parts, and the counts follow the stop', () => {
  const thought = (reasoningContent: Json) =>
    ['contentBlockDelta', { contentBlockIndex: 0, delta: { reasoningContent } }] as const;
  const events = read([
    START,
    thought({ text: 'hm ' }),
    thought({ text: 'so' }),
    thought({ signature: 'c2ln' }),
    blockStop(0),
    text(1, 'I '),
    text(1, 'call'),
    blockStop(1),
    ['contentBlockStart', { contentBlockIndex: 2, start: { toolUse: { toolUseId: 't1', name: 'f' } } }],
    ['contentBlockDelta', { contentBlockIndex: 2, delta: { toolUse: { input: '{"n":1234' } } }],
    ['contentBlockDelta', { contentBlockIndex: 2, delta: { toolUse: { input: '5678901234567890}' } } }],
    blockStop(2),
    stop('tool_use'),
    METADATA,
  ]);
  const turn = collect(events);
  assert.deepEqual(turn.choices, [
    {
      parts: [
        { type: 'reasoning', text: 'hm so', signature: 'c2ln', origin: 'anthropic-claude-v1' },
        { type: 'text', text: 'I call' },
        { type: 'toolCall', id: 't1', name: 'f', arguments: '{"n":12345678901234567890}' },
      ],
      finish: { unified: 'tool_calls', native: 'tool_use' },
    },
  ]);
  assert.deepEqual(turn.usage, {
    input: 10,
    cacheRead: 3,
    cacheWrite5m: 2,
    cacheWrite1h: 0,
    output: 5,
    reasoning: 0,
    native: { origin: 'converse', value: USAGE },
  });
  assert.equal(events.at(-1)!.type, 'end');
});

test('the stream ends with stop and counts in any order, and later events are ignored', () => {
  const after = read([START, text(0, 'x'), stop('end_turn'), METADATA, text(0, 'more')], false);
  assert.equal(after.at(-1)!.type, 'end');
  const before = read([text(0, 'x'), METADATA, stop('end_turn')], false);
  assert.equal(before.at(-1)!.type, 'end');
  const never = read([START, text(0, 'x'), stop('max_tokens')]);
  assert.deepEqual(
    never.slice(-2).map(({ type }) => type),
    ['finish', 'end'],
  );
});

test('a stream that closes before its stop is cut, whatever it sent', () => {
  assert.equal(failureOf(read([START, text(0, 'half')]))!.kind, 'cut');
  assert.equal(failureOf(read([START, text(0, 'half'), METADATA]))!.kind, 'cut');
});

test('a call without input has the arguments {}', () => {
  const events = read([
    ['contentBlockStart', { contentBlockIndex: 0, start: { toolUse: { toolUseId: 't', name: 'f' } } }],
    ['contentBlockDelta', { contentBlockIndex: 0, delta: { toolUse: { input: '' } } }],
    blockStop(0),
    stop('tool_use'),
  ]);
  assert.deepEqual(collect(events).choices[0]!.parts, [{ type: 'toolCall', id: 't', name: 'f', arguments: '{}' }]);
});

test('encrypted thinking is one part, even in pieces', () => {
  const secret = Buffer.from('RW13S0FoZ0JFZ3kz'.repeat(2));
  const piece = (from: number, to?: number) => secret.subarray(from, to).toString('base64');
  const redacted = (redactedContent: string) =>
    ['contentBlockDelta', { contentBlockIndex: 0, delta: { reasoningContent: { redactedContent } } }] as const;
  const whole = [{ type: 'reasoning', text: '', encrypted: secret.toString('base64'), origin: 'anthropic-claude-v1' }];
  for (const pieces of [[piece(0)], [piece(0, 10), piece(10)]]) {
    const events = read([START, ...pieces.map(redacted), blockStop(0), stop('end_turn')]);
    assert.deepEqual(collect(events).choices[0]!.parts, whole);
  }
});

test('a citation is attached to its text, and only a web citation has a URL', () => {
  const cite = (citation: Json) => ['contentBlockDelta', { contentBlockIndex: 0, delta: { citation } }] as const;
  const web = {
    title: 'W',
    sourceContent: [{ text: 'quoted' }],
    location: { web: { url: 'https://example.com', domain: 'example.com' } },
  };
  const page = { title: 'D', location: { documentPage: { documentIndex: 0, start: 1, end: 2 } } };
  const parts = collect(read([text(0, 'a'), cite(web), cite(page), stop('end_turn')])).choices[0]!.parts;
  assert.deepEqual(parts, [
    {
      type: 'text',
      text: 'a',
      citations: [
        { native: { origin: 'converse', value: web }, url: 'https://example.com', title: 'W', citedText: 'quoted' },
        { native: { origin: 'converse', value: page }, title: 'D' },
      ],
    },
  ]);
});

test('blocks of server-run tools are kept whole, for this service only', () => {
  const events = read([
    [
      'contentBlockStart',
      { contentBlockIndex: 0, start: { toolUse: { toolUseId: 's', name: 'grounding', type: 'server_tool_use' } } },
    ],
    ['contentBlockDelta', { contentBlockIndex: 0, delta: { toolUse: { input: '{"q":"a"}' } } }],
    blockStop(0),
    ['contentBlockStart', { contentBlockIndex: 1, start: { toolResult: { toolUseId: 's', status: 'success' } } }],
    ['contentBlockDelta', { contentBlockIndex: 1, delta: { toolResult: [{ json: { a: 1 } }] } }],
    blockStop(1),
    text(2, 'done'),
    stop('end_turn'),
  ]);
  assert.deepEqual(collect(events).choices[0], {
    parts: [
      {
        type: 'opaque',
        origin: 'converse',
        value: { toolUse: { toolUseId: 's', name: 'grounding', type: 'server_tool_use', input: { q: 'a' } } },
      },
      {
        type: 'opaque',
        origin: 'converse',
        value: { toolResult: { toolUseId: 's', status: 'success', content: [{ json: { a: 1 } }] } },
      },
      { type: 'text', text: 'done' },
    ],
    finish: { unified: 'stop', native: 'end_turn' },
  });
});

test('an exception in the stream is a failure of its kind and ends the stream', () => {
  const kinds = {
    throttlingException: ['rate_limit', 429],
    serviceUnavailableException: ['overloaded', 503],
    internalServerException: ['server', 500],
    modelStreamErrorException: ['server', 424],
    modelTimeoutException: ['timeout', 408],
    validationException: ['invalid_request', 400],
  } as const;
  for (const [type, [kind, status]] of Object.entries(kinds)) {
    const events = read([START, text(0, 'half'), [`:exception:${type}`, { message: 'why' }], text(0, 'more')]);
    const { raw: _, ...failure } = failureOf(events)!;
    assert.deepEqual(failure, { kind, status, message: 'why', code: type });
  }
  const original = { message: 'outer', originalMessage: 'inner', originalStatusCode: 529 };
  assert.equal(failureOf(read([[':exception:modelStreamErrorException', original]]))!.kind, 'overloaded');
});

test('a stream out of order is malformed, never spliced', () => {
  const call = [
    'contentBlockStart',
    { contentBlockIndex: 0, start: { toolUse: { toolUseId: 't', name: '' } } },
  ] as const;
  const wrong: (readonly (readonly [string, Json])[])[] = [
    [START, text(0, 'a'), START],
    [text(0, 'a'), blockStop(0), text(0, 'b')],
    [text(0, 'a'), stop('end_turn'), text(1, 'b')],
    [call],
    [['contentBlockDelta', 'no object']],
  ];
  for (const events of wrong) assert.equal(failureOf(read(events))!.kind, 'malformed', JSON.stringify(events));
});

test('a complete reply decodes to the same turn as its stream', () => {
  const reply = {
    output: {
      message: {
        role: 'assistant',
        content: [
          { reasoningContent: { reasoningText: { text: 'hm', signature: 'c2ln' } } },
          { citationsContent: { content: [{ text: 'a' }, { text: 'b' }], citations: [{ title: 'D' }] } },
          { toolUse: { toolUseId: 't', name: 'f', input: { x: 1 } } },
        ],
      },
    },
    stopReason: 'tool_use',
    usage: { ...USAGE, cacheDetails: [{ ttl: '1h', inputTokens: 2 }] },
    metrics: { latencyMs: 7 },
    additionalModelResponseFields: { stop_sequence: 'END' },
  };
  const read = converse.decodeReply(reply, {});
  assert.ok('turn' in read);
  const { turn } = read;
  assert.deepEqual(turn.choices[0]!.parts, [
    { type: 'reasoning', text: 'hm', signature: 'c2ln', origin: 'anthropic-claude-v1' },
    { type: 'text', text: 'ab', citations: [{ native: { origin: 'converse', value: { title: 'D' } }, title: 'D' }] },
    { type: 'toolCall', id: 't', name: 'f', arguments: '{"x":1}' },
  ]);
  assert.deepEqual(turn.choices[0]!.finish, { unified: 'tool_calls', native: 'tool_use', stopSequence: 'END' });
  assert.deepEqual([turn.usage!.cacheWrite5m, turn.usage!.cacheWrite1h], [0, 2]);
  assert.deepEqual(turn.extras, { converse: { metrics: { latencyMs: 7 } } });
  assert.deepEqual(collect(eventsOf(turn)).choices, turn.choices);
});

test('stop reasons map to the unified finish', () => {
  const ends = {
    end_turn: 'stop',
    stop_sequence: 'stop',
    max_tokens: 'length',
    model_context_window_exceeded: 'length',
    guardrail_intervened: 'content_filter',
    content_filtered: 'content_filter',
    malformed_tool_use: 'error',
    tool_use: 'stop',
    constructor: 'stop',
  };
  for (const [reason, unified] of Object.entries(ends)) {
    const finish = collect(read([text(0, 'a'), stop(reason)])).choices[0]!.finish;
    assert.deepEqual(finish, { unified, native: reason });
  }
});
