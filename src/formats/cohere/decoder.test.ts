/** Replies in the cohere format, streamed and complete. Expectations follow the vendor documentation. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TurnEvent } from '../conversation/conversation.ts';
import { collect, eventsOf } from '../conversation/replay.ts';
import { cohere } from './index.ts';

// biome-ignore lint/suspicious/noExplicitAny: events are written freely
type Json = any;

function read(events: readonly Json[]): TurnEvent[] {
  const decoder = cohere.decoder({});
  return [...events.flatMap((value) => decoder.read('', JSON.stringify(value), value)), ...decoder.close()];
}

const message = (type: string, more: Json, index?: number) => ({ type, index, delta: { message: more } });
const START = {
  id: 'c1',
  ...message('message-start', { role: 'assistant', content: [], tool_plan: '', tool_calls: [] }),
};
const textStart = (index: number) => message('content-start', { content: { type: 'text', text: '' } }, index);
const text = (index: number, said: string) => message('content-delta', { content: { text: said } }, index);
const end = (index: number) => ({ type: 'content-end', index });
const USAGE = {
  billed_units: { input_tokens: 7, output_tokens: 3 },
  tokens: { input_tokens: 100, output_tokens: 20, reasoning_tokens: 5 },
  cached_tokens: 40,
};
const stop = (finish_reason: string, more = {}) => ({
  type: 'message-end',
  delta: { finish_reason, usage: USAGE, ...more },
});
const COUNTED = {
  input: 60,
  cacheRead: 40,
  cacheWrite5m: 0,
  cacheWrite1h: 0,
  output: 20,
  reasoning: 5,
  billed: { input: 7, output: 3 },
  native: { origin: 'cohere', value: USAGE },
};

function failureOf(events: readonly TurnEvent[]) {
  const last = events.at(-1)!;
  assert.equal(last.type, 'failure');
  return last.type === 'failure' ? last.failure : undefined;
}

test('plan and calls are separate parts, and the plan is never lost', () => {
  const call = (index: number, id: string) =>
    message('tool-call-start', { tool_calls: { id, type: 'function', function: { name: 'f', arguments: '' } } }, index);
  const written = (index: number, piece: string) =>
    message('tool-call-delta', { tool_calls: { function: { arguments: piece } } }, index);
  const turn = collect(
    read([
      START,
      message('tool-plan-delta', { tool_plan: 'I will ' }),
      message('tool-plan-delta', { tool_plan: 'call.' }),
      call(0, 'a'),
      written(0, '{"n":123456789'),
      written(0, '01234567890}'),
      { type: 'tool-call-end', index: 0 },
      call(1, 'b'),
      { type: 'tool-call-end', index: 1 },
      stop('TOOL_CALL'),
    ]),
  );
  assert.equal(turn.id, 'c1');
  assert.deepEqual(turn.choices[0], {
    parts: [
      { type: 'reasoning', text: 'I will call.', id: 'tool_plan', origin: 'unknown' },
      { type: 'toolCall', id: 'a', name: 'f', arguments: '{"n":12345678901234567890}' },
      { type: 'toolCall', id: 'b', name: 'f', arguments: '{}' },
    ],
    finish: { unified: 'tool_calls', native: 'TOOL_CALL' },
  });
  assert.deepEqual(turn.usage, COUNTED);
});

const CITED = {
  start: 0,
  end: 5,
  text: 'facts',
  sources: [
    { type: 'document', id: 'd', document: { id: 'd', title: 'T', text: 'facts', url: 'https://example.com/d' } },
  ],
  type: 'TEXT_CONTENT',
  content_index: 1,
};

test('thinking, text and citations keep their order, even a citation after its text', () => {
  const turn = collect(
    read([
      START,
      message('content-start', { content: { type: 'thinking', thinking: '' } }, 0),
      message('content-delta', { content: { thinking: 'hm' } }, 0),
      end(0),
      textStart(1),
      text(1, 'facts'),
      end(1),
      message('citation-start', { citations: CITED }, 0),
      { type: 'citation-end', index: 0 },
      stop('COMPLETE'),
    ]),
  );
  const citation = {
    native: { origin: 'cohere', value: CITED },
    start: 0,
    end: 5,
    url: 'https://example.com/d',
    title: 'T',
    citedText: 'facts',
  };
  assert.deepEqual(turn.choices[0]!.parts, [
    { type: 'reasoning', text: 'hm', origin: 'unknown' },
    { type: 'text', text: 'facts', citations: [citation] },
  ]);
});

test('a complete reply decodes to the same turn as its stream', () => {
  const reply = {
    id: 'c1',
    message: {
      role: 'assistant',
      tool_plan: 'plan',
      content: [
        { type: 'thinking', thinking: 'hm' },
        { type: 'text', text: 'facts' },
      ],
      citations: [CITED],
      tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{"x": 1}' } }],
    },
    finish_reason: 'TOOL_CALL',
    usage: USAGE,
    logprobs: [{ text: 'facts', token_ids: [1, 2], logprobs: [-0.5, -0.25] }],
  };
  const answer = cohere.decodeReply(reply, {});
  assert.ok('turn' in answer);
  assert.deepEqual(
    answer.turn.choices[0]!.parts.map(({ type }) => type),
    ['reasoning', 'reasoning', 'text', 'toolCall'],
  );
  assert.deepEqual(answer.turn.usage, COUNTED);
  assert.deepEqual(answer.turn.choices[0]!.logprobs, {
    content: [{ token: 'facts', logprob: -0.75, bytes: [...Buffer.from('facts')], top_logprobs: [] }],
  });
  assert.deepEqual(collect(eventsOf(answer.turn)).choices, answer.turn.choices);
});

test('a stream without message-end is cut, and one that ends in an error fails', () => {
  assert.equal(failureOf(read([START, textStart(0), text(0, 'half')]))!.kind, 'cut');
  const failed = failureOf(read([START, textStart(0), text(0, 'half'), stop('ERROR', { error: 'it broke' })]))!;
  assert.deepEqual([failed.kind, failed.message, failed.code], ['server', 'it broke', 'ERROR']);
  assert.equal(failureOf(read([START, stop('TIMEOUT')]))!.kind, 'timeout');
  assert.equal(failureOf(read([START, { message: 'internal server error' }]))!.kind, 'server');
});

test('a stream out of order is malformed, never spliced', () => {
  const nameless = message('tool-call-start', { tool_calls: { id: 'a', function: { name: '' } } }, 0);
  const lost = message('tool-call-delta', { tool_calls: { function: { arguments: '{' } } }, 0);
  for (const events of [
    [START, text(0, 'a'), START],
    [START, nameless],
    [START, lost],
    [START, 'text'],
  ]) {
    assert.equal(failureOf(read(events))!.kind, 'malformed', JSON.stringify(events));
  }
});

test('streams without start events and with unknown events are read', () => {
  const turn = collect(read([text(0, 'a'), { type: 'debug', prompt: 'x' }, text(0, 'b'), stop('MAX_TOKENS')]));
  assert.deepEqual(turn.choices[0], {
    parts: [{ type: 'text', text: 'ab' }],
    finish: { unified: 'length', native: 'MAX_TOKENS' },
  });
});

test('finish reasons map to the unified finish', () => {
  const ends = {
    COMPLETE: 'stop',
    STOP_SEQUENCE: 'stop',
    MAX_TOKENS: 'length',
    ERROR_TOXIC: 'content_filter',
    TOOL_CALL: 'stop',
    constructor: 'stop',
  };
  for (const [reason, unified] of Object.entries(ends)) {
    assert.equal(collect(read([text(0, 'a'), stop(reason)])).choices[0]!.finish.unified, unified, reason);
  }
});

test('usage with only one of the two counts uses that one', () => {
  const usage = (given: Json) => {
    const answer = cohere.decodeReply({ message: { content: [] }, finish_reason: 'COMPLETE', usage: given }, {});
    return 'turn' in answer ? answer.turn.usage : undefined;
  };
  const billed = usage({ billed_units: { input_tokens: 7, output_tokens: 3 } })!;
  assert.deepEqual([billed.input, billed.output, billed.billed], [7, 3, undefined]);
  assert.equal(usage({ tokens: { input_tokens: 9, output_tokens: 1 } })!.billed, undefined);
  assert.equal(usage({ tokens: { input_tokens: 9, output_tokens: 2 ** 40 } }), undefined);
  assert.equal(usage({}), undefined);
});

test('every documented error is classified', () => {
  const cases: [number, Json, string][] = [
    [
      400,
      { message: 'too many tokens: size limit exceeded by 25836 tokens', error_type: 'TOO_MANY_TOKENS' },
      'context_length',
    ],
    [400, { message: 'invalid request: message must be at least 1 token long' }, 'invalid_request'],
    [400, { message: "model 'x' not found, make sure the correct model ID was used" }, 'not_found'],
    [401, { message: 'invalid api token' }, 'auth'],
    [402, { message: 'Please add or update your payment method' }, 'quota'],
    [403, { message: 'no access' }, 'permission'],
    [404, { message: "model 'x' not found" }, 'not_found'],
    [422, { message: 'messages: missing' }, 'invalid_request'],
    [429, { message: 'You are using a Trial key, which is limited to 40 API calls / minute.' }, 'rate_limit'],
    [429, { message: 'You are past the per month request limit for this model' }, 'quota'],
    [498, { message: 'blocked output: please try again' }, 'content_filter'],
    [499, { message: 'request cancelled' }, 'server'],
    [500, { message: 'internal server error' }, 'server'],
    [501, { message: 'not implemented' }, 'server'],
    [503, { message: 'service unavailable' }, 'overloaded'],
    [504, { message: 'gateway timeout' }, 'timeout'],
  ];
  for (const [status, body, kind] of cases) {
    const failure = cohere.decodeFailure(status, JSON.stringify(body));
    assert.deepEqual([failure.kind, failure.status], [kind, status], body.message);
  }
  assert.equal(cohere.decodeFailure(502, '<html>').kind, 'server');
});
