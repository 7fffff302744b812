import assert from 'node:assert/strict';
import test from 'node:test';
import fc from 'fast-check';
import { GatewayError } from '../../base/errors.ts';
import { readMessageStream } from '../../testing/clients/messages-client.ts';
import { samples } from '../../testing/laws/samples.ts';
import { checkTurnEvents } from '../../testing/laws/turn-events.ts';
import { corpusMissing, recordings } from '../../testing/recordings/corpus.ts';
import type { TurnEvent } from '../conversation/conversation.ts';
import type { Stamp } from '../conversation/format.ts';
import { collect } from '../conversation/replay.ts';
import { messages } from './index.ts';

const STAMP: Stamp = { id: 'gen-1', model: 'acme/large', provider: 'Acme', created: 1, usage: 'none' };

const FAILURE = new GatewayError('provider_unavailable', 'the provider failed');

// biome-ignore lint/suspicious/noExplicitAny: events are written by hand
type Json = any;

function decode(events: readonly Json[]): TurnEvent[] {
  const decoder = messages.decoder({});
  const told = events.flatMap((value) => decoder.read('', JSON.stringify(value), value));
  return [...told, ...decoder.close()];
}

const start = (message: object = {}) => ({ type: 'message_start', message: { id: 'm', content: [], ...message } });
const block = (index: number, content_block: object) => ({ type: 'content_block_start', index, content_block });
const delta = (index: number, piece: object) => ({ type: 'content_block_delta', index, delta: piece });
const stop = (index: number) => ({ type: 'content_block_stop', index });
const closing = (reason: string | null, usage?: object) => ({
  type: 'message_delta',
  delta: { stop_reason: reason },
  usage,
});

const names = fc.constantFrom(
  'message_start',
  'content_block_start',
  'content_block_delta',
  'content_block_stop',
  'message_delta',
  'message_stop',
  'ping',
  'later_event',
);
const kinds = fc.constantFrom(
  'text',
  'thinking',
  'redacted_thinking',
  'tool_use',
  'server_tool_use',
  'tool_result',
  'image',
  'x',
);
const pieces = fc.constantFrom(
  'text_delta',
  'input_json_delta',
  'thinking_delta',
  'signature_delta',
  'citations_delta',
  'x',
);
const odd = fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.string());
// Arguments are forwarded as the model wrote them, so malformed ones would only test the reader.
const object = fc.dictionary(fc.stringMatching(/^[a-z]{1,3}$/), fc.jsonValue({ maxDepth: 1 }), {
  noNullPrototype: true,
});
const wild = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record(
      {
        type: names,
        index: fc.oneof(fc.integer({ min: 0, max: 2 }), odd),
        content_block: fc.oneof(
          odd,
          fc.record({
            type: kinds,
            text: odd,
            id: odd,
            name: odd,
            input: object,
            content: odd,
            source: odd,
            citations: odd,
            signature: odd,
            data: odd,
          }),
        ),
        delta: fc.oneof(
          odd,
          fc.record({
            type: pieces,
            text: odd,
            partial_json: fc.constantFrom('', '{}'),
            thinking: odd,
            signature: odd,
            citation: odd,
            stop_reason: odd,
          }),
        ),
        message: fc.oneof(odd, fc.record({ content: odd, usage: odd, id: odd, stop_reason: odd })),
        usage: fc.oneof(
          odd,
          fc.record({ input_tokens: odd, output_tokens: odd, cache_creation: odd, server_tool_use: odd }),
        ),
      },
      { requiredKeys: ['type'], noNullPrototype: true },
    ),
  },
  { weight: 1, arbitrary: odd },
) as fc.Arbitrary<Json>;

test('no upstream event throws, and decoded events follow the contract, translated and relayed', () => {
  fc.assert(
    fc.property(fc.array(wild, { maxLength: 12 }), (events) => {
      const decoder = messages.decoder({});
      const encoder = messages.encoder(STAMP);
      const relay = messages.relay.stream(STAMP, {});
      const told: TurnEvent[] = [];
      let text = '';
      for (const event of [start(), ...events]) {
        const value = JSON.parse(JSON.stringify(event));
        const data = JSON.stringify(event);
        const step = decoder.read('', data, value);
        told.push(...step);
        relay.event('', data, value, step);
        for (const one of step) text += encoder.event(one);
      }
      const last = decoder.close();
      told.push(...last);
      for (const one of last) text += encoder.event(one);
      checkTurnEvents(told);
      relay.end({});
      const done = told.at(-1)?.type === 'end' ? encoder.end({}) : encoder.failure(FAILURE, {});
      readMessageStream(text + done);
    }),
    { numRuns: samples(500) },
  );
});

test('every recorded stream decodes by the contract', { skip: corpusMissing }, () => {
  for (const one of recordings(['messages']).filter((recording) => recording.stream)) {
    checkTurnEvents(decode(one.events.map((event) => JSON.parse(event.data))));
  }
});

test('a stream that closes cleanly ends after the stop reason, and is cut before it', () => {
  const begun = [start(), block(0, { type: 'text', text: '' }), delta(0, { type: 'text_delta', text: 'a' })];
  assert.equal(decode([...begun, stop(0), closing('end_turn')]).at(-1)?.type, 'end');
  for (const events of [[], begun, [...begun, stop(0)], [...begun, stop(0), closing(null)]]) {
    const last = decode(events).at(-1);
    assert.equal(last?.type === 'failure' && last.failure.kind, 'cut');
  }
});

test('blocks still open at the end are closed before the finish', () => {
  const events = decode([
    start(),
    block(0, { type: 'tool_use', id: 't', name: 'f', input: {} }),
    closing('max_tokens'),
  ]);
  assert.deepEqual(
    events.map((event) => event.type),
    ['start', 'partStart', 'partDelta', 'partStop', 'finish', 'end'],
  );
});

test('a repeated start is ignored, a start after content is a failure', () => {
  const text = block(0, { type: 'text', text: 'a' });
  const events = decode([start(), start(), text, stop(0), closing('end_turn')]);
  assert.equal(events.filter((event) => event.type === 'start').length, 1);
  const restarted = decode([start(), text, start()]).at(-1);
  assert.equal(restarted?.type === 'failure' && restarted.failure.kind, 'malformed');
});

test('counts at the end replace those at the start, and the others stay', () => {
  const events = decode([
    start({
      usage: {
        input_tokens: 9,
        output_tokens: 1,
        cache_creation_input_tokens: 5,
        cache_creation: { ephemeral_1h_input_tokens: 5 },
      },
    }),
    closing('end_turn', { output_tokens: 7, input_tokens: 10, cache_creation_input_tokens: null }),
  ]);
  const { native: _, ...usage } = collect(events).usage!;
  assert.deepEqual(usage, { input: 10, cacheRead: 0, cacheWrite5m: 0, cacheWrite1h: 5, output: 7, reasoning: 0 });
});

test('data that is not JSON, a delta outside a block and an error of any shape are failures', () => {
  const decoder = messages.decoder({});
  const [bad] = decoder.read('', 'not json', undefined);
  assert.equal(bad?.type === 'failure' && bad.failure.kind, 'malformed');
  assert.deepEqual(decoder.close(), []);
  const outside = decode([start(), delta(3, { type: 'text_delta', text: 'x' })]).at(-1);
  assert.equal(outside?.type === 'failure' && outside.failure.kind, 'malformed');
  const unnamed = decode([start(), { error: { message: 'Prompt is too long', type: 'invalid_request_error' } }]).at(-1);
  assert.equal(unnamed?.type === 'failure' && unnamed.failure.kind, 'context_length');
});

test('errors with a status are classified by type, status and text', () => {
  const kind = (status: number, type: string | undefined, message = '') =>
    messages.decodeFailure(status, JSON.stringify({ type: 'error', error: { type, message } })).kind;
  assert.equal(kind(400, 'invalid_request_error', 'max_tokens: too large'), 'invalid_request');
  assert.equal(
    kind(400, 'invalid_request_error', 'prompt is too long: 210000 tokens > 200000 maximum'),
    'context_length',
  );
  assert.equal(kind(400, 'invalid_request_error', 'Your credit balance is too low to access the API'), 'quota');
  assert.equal(kind(400, 'invalid_request_error', 'Output blocked by content filtering policy'), 'content_filter');
  assert.equal(kind(413, 'request_too_large', 'Request exceeds the maximum size'), 'too_large');
  assert.equal(kind(429, 'rate_limit_error'), 'rate_limit');
  assert.equal(kind(529, 'overloaded_error'), 'overloaded');
  assert.equal(kind(500, 'api_error'), 'server');
  assert.equal(kind(402, undefined), 'quota');
  assert.equal(kind(503, undefined), 'overloaded');
  const html = messages.decodeFailure(502, '<html>Bad Gateway</html>');
  assert.deepEqual([html.kind, html.status, html.raw], ['server', 502, '<html>Bad Gateway</html>']);
  assert.ok(String(messages.decodeFailure(500, 'x'.repeat(200_000)).raw).length <= 65_536);
});

test('an error with status 200 and an answer of another shape are failures, and clients get one error event', () => {
  const decoded = decode([start(), { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }]);
  assert.equal(decoded.at(-1)?.type, 'failure');
  assert.match(messages.encoder(STAMP).failure(FAILURE, {}), /^event: error\ndata: .*\n\n$/);
  const whole = messages.decodeReply({ type: 'error', error: { type: 'api_error', message: 'x' } }, {});
  assert.equal('failure' in whole && whole.failure.kind, 'server');
  for (const value of [null, [], 'x', {}, { content: 'x' }]) assert.ok('failure' in messages.decodeReply(value, {}));
});
