/**
 * Replies in the responses format, written by hand: every event in the vendor's order, and the same items in a complete
 * reply.
 */
import '../index.ts';
import assert from 'node:assert/strict';
import test from 'node:test';
import { GatewayError } from '../../base/errors.ts';
import { readDocument } from '../../base/json.ts';
import { readResponseStream, readWholeResponse } from '../../testing/clients/responses-client.ts';
import type { Part, Turn, TurnEvent } from '../conversation/conversation.ts';
import type { Stamp } from '../conversation/format.ts';
import { eventsOf } from '../conversation/replay.ts';
import { responses } from './index.ts';

const STAMP: Stamp = { id: 'gen-0a1b', model: 'acme/large', provider: 'Acme', created: 7, usage: 'none' };
const USAGE = { input: 5, cacheRead: 2, cacheWrite5m: 1, cacheWrite1h: 0, output: 4, reasoning: 1 };

// biome-ignore lint/suspicious/noExplicitAny: events are read freely
type Json = any;

function streamed(events: readonly TurnEvent[], end: 'end' | GatewayError = 'end'): Json[] {
  const encoder = responses.encoder(STAMP);
  let text = events.map((event) => encoder.event(event)).join('');
  text += end === 'end' ? encoder.end({ usage: USAGE }) : encoder.failure(end, { usage: USAGE });
  readResponseStream(text);
  return text
    .split('\n\n')
    .filter((block) => block !== '' && !block.endsWith('[DONE]'))
    .map((block) => JSON.parse(block.slice(block.indexOf('data: ') + 'data: '.length)));
}

const start = (index: number, part: Part): TurnEvent => ({ type: 'partStart', choice: 0, index, part });
const delta = (index: number, delta: Json): TurnEvent => ({ type: 'partDelta', choice: 0, index, delta });
const stop = (index: number): TurnEvent => ({ type: 'partStop', choice: 0, index });
const finish = (unified: 'stop' | 'length' | 'tool_calls' | 'content_filter' = 'stop'): TurnEvent => ({
  type: 'finish',
  choice: 0,
  finish: { unified, native: null },
});
const call = (id: string, more: Partial<Part> = {}): Part =>
  ({ type: 'toolCall', id, name: 'f', arguments: '', ...more }) as Part;

/** Event types without their common prefix, each with its distinguishing value. */
const typesOf = (events: Json[]) => events.map(({ type }) => type.replace('response.', ''));

test('a text and a refusal are parts of one message, each streamed from start to end', () => {
  const events = streamed([
    { type: 'start', created: 9 },
    start(0, { type: 'text', text: '' }),
    delta(0, { text: 'hel' }),
    delta(0, { text: 'lo' }),
    delta(0, { citation: { url: 'https://a.example', title: 'A' } }),
    stop(0),
    start(1, { type: 'refusal', text: 'no' }),
    stop(1),
    finish(),
  ]);
  assert.deepEqual(typesOf(events), [
    'created',
    'in_progress',
    'output_item.added',
    'content_part.added',
    'output_text.delta',
    'output_text.delta',
    'output_text.annotation.added',
    'output_text.done',
    'content_part.done',
    'content_part.added',
    'refusal.delta',
    'refusal.done',
    'content_part.done',
    'output_item.done',
    'completed',
  ]);
  assert.deepEqual(
    events.map(({ sequence_number: number }) => number),
    events.map((_, index) => index),
  );
  const { response } = events.at(-1);
  assert.deepEqual(response.output, [
    {
      id: 'msg_0a1b_0',
      type: 'message',
      status: 'completed',
      role: 'assistant',
      content: [
        {
          type: 'output_text',
          text: 'hello',
          annotations: [{ type: 'url_citation', url: 'https://a.example', title: 'A', start_index: 0, end_index: 5 }],
          logprobs: [],
        },
        { type: 'refusal', refusal: 'no' },
      ],
    },
  ]);
  assert.deepEqual([response.id, response.created_at, response.usage.total_tokens], ['resp_0a1b', 9, 12]);
});

test('reasoning is sent as a summary or as text, and a signature or encrypted content closes its item', () => {
  const origin = 'openai-responses-v1' as const;
  const events = streamed([
    start(0, { type: 'reasoning', text: 'one', summary: true, id: 'rs_x', origin }),
    stop(0),
    start(1, { type: 'reasoning', text: '', summary: true, id: 'rs_x', origin }),
    delta(1, { text: 'two' }),
    delta(1, { encrypted: 'e' }),
    stop(1),
    start(2, { type: 'reasoning', text: 'three', signature: 's', origin: 'anthropic-claude-v1' }),
    stop(2),
    finish(),
  ]);
  assert.deepEqual(typesOf(events).slice(2, -1), [
    'output_item.added',
    'reasoning_summary_part.added',
    'reasoning_summary_text.delta',
    'reasoning_summary_text.done',
    'reasoning_summary_part.done',
    'reasoning_summary_part.added',
    'reasoning_summary_text.delta',
    'reasoning_summary_text.done',
    'reasoning_summary_part.done',
    'output_item.done',
    'output_item.added',
    'content_part.added',
    'reasoning_text.delta',
    'reasoning_text.done',
    'content_part.done',
    'output_item.done',
  ]);
  const [first, second] = events.at(-1).response.output;
  const summary = ['one', 'two'].map((text) => ({ type: 'summary_text', text }));
  assert.deepEqual(first, {
    id: 'rs_x',
    type: 'reasoning',
    status: 'completed',
    summary,
    encrypted_content: 'e',
    format: origin,
  });
  assert.deepEqual(second, {
    id: 'rs_0a1b_1',
    type: 'reasoning',
    status: 'completed',
    summary: [],
    content: [{ type: 'reasoning_text', text: 'three' }],
    format: 'anthropic-claude-v1',
    signature: 's',
  });
});

test('parallel calls interleave, each is done when it ends, and missing arguments become an empty object', () => {
  const events = streamed([
    start(0, call('c1')),
    start(1, call('c2', { custom: true })),
    delta(1, { arguments: 'fr' }),
    delta(0, { arguments: '{"a":' }),
    delta(1, { arguments: 'ee' }),
    stop(1),
    delta(0, { arguments: '1}' }),
    stop(0),
    start(2, call('c3')),
    stop(2),
    finish('tool_calls'),
  ]);
  assert.deepEqual(
    events.slice(2, -1).map(({ type, output_index: index }) => `${index} ${type.replace('response.', '')}`),
    [
      '0 output_item.added',
      '1 output_item.added',
      '1 custom_tool_call_input.delta',
      '0 function_call_arguments.delta',
      '1 custom_tool_call_input.delta',
      '1 custom_tool_call_input.done',
      '1 output_item.done',
      '0 function_call_arguments.delta',
      '0 function_call_arguments.done',
      '0 output_item.done',
      '2 output_item.added',
      '2 function_call_arguments.delta',
      '2 function_call_arguments.done',
      '2 output_item.done',
    ],
  );
  assert.deepEqual(
    events.at(-1).response.output.map((item: Json) => [item.type, item.call_id, item.arguments ?? item.input]),
    [
      ['function_call', 'c1', '{"a":1}'],
      ['custom_tool_call', 'c2', 'free'],
      ['function_call', 'c3', '{}'],
    ],
  );
});

test('a call that the output limit cut off is incomplete, one before the limit is completed', () => {
  const cases: [TurnEvent[], string[]][] = [
    [[start(0, call('c1')), delta(0, { arguments: '{"a":' }), stop(0)], ['incomplete']],
    [[start(0, call('c1')), stop(0)], ['incomplete']],
    [[start(0, call('c1', { custom: true })), delta(0, { arguments: 'fr' }), stop(0)], ['incomplete']],
    [[start(0, call('c1')), delta(0, { arguments: '{"a":1}' }), stop(0)], ['completed']],
    [
      [start(0, call('c1', { arguments: '{' })), stop(0), start(1, { type: 'text', text: 'so' }), stop(1)],
      ['completed', 'incomplete'],
    ],
  ];
  for (const [events, expected] of cases) {
    const told = streamed([...events, finish('length')]);
    const done = told.filter(({ type }) => type === 'response.output_item.done').map(({ item }) => item);
    assert.deepEqual(
      done.map(({ status }) => status),
      expected,
    );
    assert.deepEqual(told.at(-1).response.output, done);
  }
  const parts = [call('c1', { arguments: '{"a":' })];
  const turn: Turn = { choices: [{ parts, finish: { unified: 'length', native: null } }], usage: USAGE };
  assert.equal((responses.encodeReply(turn, STAMP, {}) as Json).output[0].status, 'incomplete');
});

test('call signatures and blocks of another vendor survive the round trip through the client', () => {
  const parts: Part[] = [
    { type: 'opaque', origin: 'messages', value: { type: 'server_tool_use', id: 'srv', input: {} } },
    { ...call('c1', { arguments: '{}' }), signature: { value: 'sig', origin: 'google-gemini-v1' } } as Part,
    { type: 'opaque', origin: 'responses', value: { type: 'web_search_call', id: 'ws', status: 'completed' } },
  ];
  const turn: Turn = { choices: [{ parts, finish: { unified: 'tool_calls', native: null } }], usage: USAGE };
  for (const output of [
    (responses.encodeReply(turn, STAMP, {}) as Json).output,
    streamed(eventsOf(turn)).at(-1).response.output,
  ]) {
    const conversation = responses.decode({ input: [{ role: 'user', content: 'hi' }, ...output] });
    const said = conversation.messages[1]!.parts.map(({ extras: _, ...part }: Json) => part);
    assert.deepEqual(said, parts);
  }
});

test('a generated image has the vendor’s events', () => {
  const source = { kind: 'bytes' as const, mediaType: 'image/webp', data: 'aGk=' };
  const events = streamed([start(0, { type: 'image', source }), stop(0), finish()]);
  assert.deepEqual(typesOf(events).slice(2, -1), [
    'output_item.added',
    'image_generation_call.in_progress',
    'image_generation_call.generating',
    'image_generation_call.completed',
    'output_item.done',
  ]);
  const [item] = events.at(-1).response.output;
  assert.deepEqual([item.result, item.output_format, item.status], ['aGk=', 'webp', 'completed']);
});

test('replies ended by the cap or a filter are incomplete, each with its reason', () => {
  for (const [unified, reason] of [
    ['length', 'max_output_tokens'],
    ['content_filter', 'content_filter'],
  ] as const) {
    const last = streamed([start(0, { type: 'text', text: 'half' }), stop(0), finish(unified)]).at(-1);
    assert.equal(last.type, 'response.incomplete');
    assert.deepEqual(last.response.incomplete_details, { reason });
    assert.equal(last.response.output[0].status, unified === 'length' ? 'incomplete' : 'completed');
  }
});

test('a failure ends open texts as incomplete, leaves calls open and uses the format’s error code', () => {
  const events = streamed(
    [
      start(0, { type: 'text', text: 'half' }),
      stop(0),
      start(1, call('c1')),
      delta(1, { arguments: '{"a"' }),
      start(2, call('c2', { custom: true })),
      delta(2, { arguments: 'rm -rf /' }),
    ],
    new GatewayError('rate_limit_exceeded', 'too fast'),
  );
  const last = events.at(-1);
  const error = { code: 'rate_limit_exceeded', message: 'too fast' };
  assert.deepEqual([last.type, last.response.error], ['response.failed', error]);
  assert.equal(last.response.error_type, 'rate_limit_exceeded');
  assert.deepEqual(
    last.response.output.map((item: Json) => [item.type, item.status, item.arguments]),
    [['message', 'completed', undefined]],
  );
  const done = events.filter(({ type }) => /(?:arguments|input|output_item)\.done$/.test(type));
  assert.deepEqual(
    done.map(({ item }) => item.type),
    ['message'],
  );
  const limit = new GatewayError('context_length_exceeded', 'too long');
  assert.deepEqual(streamed([start(0, { type: 'text', text: 'half' })], limit).at(-1).response.incomplete_details, {
    reason: 'max_output_tokens',
  });
  const [alone, ...others] = streamed([], new GatewayError('provider_unavailable', 'gone'));
  assert.deepEqual([alone.type, alone.code, alone.message, others], ['error', 'server_error', 'gone', []]);
});

test('an endless reply is refused as too large instead of filling memory', () => {
  const piece = 'x'.repeat(8 * 1024 * 1024);
  const pieces = Array.from({ length: 6 }, () => delta(0, { text: piece }));
  const last = streamed([start(0, { type: 'text', text: 'half' }), ...pieces, stop(0), finish()]).at(-1);
  assert.deepEqual([last.type, last.response.error.code], ['response.failed', 'server_error']);
  assert.ok(last.response.output[0].content[0].text.length < 48 * 1024 * 1024);
});

test('a response repeats the request’s members, with defaults for absent ones', () => {
  const body = {
    input: 'hi',
    model: 'm',
    temperature: 0.3,
    tools: [{ type: 'function', name: 'f' }],
    reasoning: { effort: 'low' },
  };
  const document = readDocument(Buffer.from(JSON.stringify(body)));
  const turn: Turn = { choices: [{ parts: [{ type: 'text', text: 'a' }], finish: { unified: 'stop', native: null } }] };
  const reply: Json = responses.encodeReply(
    turn,
    { ...STAMP, echo: () => responses.echo!(document) },
    { usage: USAGE },
  );
  readWholeResponse(JSON.stringify(reply));
  assert.deepEqual([reply.temperature, reply.tools, reply.top_p, reply.store], [0.3, body.tools, 1, false]);
  assert.deepEqual(reply.reasoning, { effort: 'low', summary: null });
});

test('log probabilities are attached to their text', () => {
  const entry = { token: 'a', logprob: -0.1, bytes: [97], top_logprobs: [] };
  const choice = {
    parts: [{ type: 'text' as const, text: 'a' }, call('c1', { arguments: '{}' })],
    finish: { unified: 'tool_calls' as const, native: null },
    logprobs: { content: [entry] },
  };
  const reply: Json = responses.encodeReply({ choices: [choice] }, STAMP, {});
  assert.deepEqual(reply.output[0].content[0].logprobs, [entry]);
  const events = streamed([
    start(0, { type: 'text', text: 'a' }),
    { type: 'logprobs', choice: 0, logprobs: { content: [entry] } },
    stop(0),
    finish(),
  ]);
  assert.deepEqual(events.at(-1).response.output[0].content[0].logprobs, [entry]);
});

test('only a completed response has a completion time', () => {
  const turn = (unified: 'stop' | 'length'): Turn => ({
    choices: [{ parts: [{ type: 'text', text: 'a' }], finish: { unified, native: null } }],
  });
  const reply = (unified: 'stop' | 'length') => responses.encodeReply(turn(unified), STAMP, { completed: 9 }) as Json;
  assert.deepEqual([reply('stop').completed_at, reply('length').completed_at], [9, null]);
  const text = JSON.stringify({ id: 'resp_up', object: 'response', status: 'completed', output: [] });
  const relayed = responses.relay.reply({
    text,
    value: JSON.parse(text),
    turn: turn('stop'),
    stamp: STAMP,
    closing: { completed: 9 },
  });
  assert.equal(JSON.parse(relayed).completed_at, 9);
});
