/** Whatever an upstream sends, nothing throws and clients get valid output. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc, { type Arbitrary } from 'fast-check';
import { GatewayError } from '../../base/errors.ts';
import { parseJson } from '../../base/json.ts';
import { readChatStream, readWholeChat } from '../../testing/clients/chat-client.ts';
import { samples } from '../../testing/laws/samples.ts';
import type { Closing, Stamp } from '../conversation/format.ts';
import '../index.ts';
import { chat } from './index.ts';

const STAMP: Stamp = { id: 'gen-1', model: 'acme/large', provider: 'Acme', created: 1_700_000_000, usage: 'finish' };
const CLOSING: Closing = {
  usage: { input: 1, cacheRead: 0, cacheWrite5m: 0, cacheWrite1h: 0, output: 1, reasoning: 0 },
};

const junk = fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.constantFrom<unknown>('', 0, -1, null, [], {}, 1e9));
/** A member of the right type most of the time. */
const likely = (right: Arbitrary<unknown>) => fc.oneof({ weight: 4, arbitrary: right }, { weight: 1, arbitrary: junk });
const some = (members: Record<string, Arbitrary<unknown>>) => fc.record(members, { requiredKeys: [] });

const call = some({
  index: likely(fc.constantFrom(0, 0, 1, 2)),
  id: likely(fc.constantFrom('c1', 'c2', '')),
  type: likely(fc.constant('function')),
  function: likely(some({ name: likely(fc.constantFrom('f', '')), arguments: fc.constant('') })),
});
const detail = some({
  type: likely(fc.constantFrom('reasoning.text', 'reasoning.summary', 'reasoning.encrypted')),
  text: likely(fc.constantFrom('t', '')),
  summary: likely(fc.constant('s')),
  data: likely(fc.constant('d')),
  signature: likely(fc.constant('g')),
  index: likely(fc.constantFrom(0, 1)),
  id: likely(fc.constantFrom('c1', 'r1')),
});
const message = some({
  role: likely(fc.constant('assistant')),
  content: likely(
    fc.oneof(
      fc.constantFrom('', 'text'),
      fc.array(
        likely(
          some({
            type: likely(fc.constantFrom('text', 'thinking', 'image_url')),
            text: likely(fc.constant('t')),
            thinking: junk,
          }),
        ),
      ),
    ),
  ),
  reasoning: likely(fc.constantFrom('', 'r')),
  reasoning_content: likely(fc.constantFrom('', 'r')),
  reasoning_details: likely(fc.array(detail, { maxLength: 3 })),
  refusal: likely(fc.constantFrom('', 'no')),
  tool_calls: likely(fc.array(likely(call), { maxLength: 3 })),
  function_call: junk,
  annotations: likely(fc.array(junk, { maxLength: 2 })),
  images: likely(fc.array(junk, { maxLength: 2 })),
  audio: junk,
});
const choice = some({
  index: likely(fc.constantFrom(0, 0, 0, 1)),
  delta: likely(message),
  message: likely(message),
  finish_reason: likely(fc.constantFrom(null, '', 'stop', 'length', 'tool_calls', 'weird', 'constructor', '__proto__')),
  logprobs: likely(some({ content: likely(fc.array(junk, { maxLength: 1 })) })),
  stop_reason: junk,
});
const chunk = some({
  id: likely(fc.constantFrom('u1', '')),
  object: likely(fc.constant('chat.completion.chunk')),
  created: likely(fc.constantFrom(5, 0)),
  model: likely(fc.constant('m')),
  provider: likely(fc.constant('p')),
  choices: likely(fc.array(likely(choice), { maxLength: 2 })),
  usage: likely(
    some({ prompt_tokens: likely(fc.nat()), completion_tokens: likely(fc.nat()), prompt_tokens_details: junk }),
  ),
  citations: junk,
  service_tier: junk,
  system_fingerprint: junk,
});

test('any sequence of events becomes a valid stream', () => {
  fc.assert(
    fc.property(
      fc.array(likely(chunk), { maxLength: 6 }),
      fc.constantFrom('chunk', 'finish', 'none'),
      (chunks, usage) => {
        for (const way of ['relay', 'encode'] as const) {
          const stamp = { ...STAMP, usage };
          const decoder = chat.decoder({});
          const relay = chat.relay.stream(stamp, {});
          const encoder = chat.encoder(stamp);
          let text = '';
          let ended = false;
          for (const data of [...chunks.map((value) => JSON.stringify(value)), '[DONE]']) {
            const value = data === '[DONE]' ? undefined : parseJson(data);
            const events = decoder.read('', data, value);
            if (events.some((event) => event.type === 'failure')) break;
            text +=
              way === 'relay'
                ? relay.event('', data, value, events)
                : events.map((event) => encoder.event(event)).join('');
            ended = events.some((event) => event.type === 'end');
          }
          const writer = way === 'relay' ? relay : encoder;
          text += ended ? writer.end(CLOSING) : writer.failure(new GatewayError('server', 'broken'), CLOSING);
          if (way === 'encode' || chunks.every(isPlain)) readChatStream(text, usage);
          else
            for (const event of text.trimEnd().split('\n\n')) if (event !== 'data: [DONE]') JSON.parse(event.slice(6));
        }
      },
    ),
    { numRuns: samples(500) },
  );
});

/** A relay also forwards what it does not know, and wrong types of minor members; the strict reader rejects those. */
function isPlain(value: unknown): boolean {
  return !/"(reasoning|refusal|annotations|logprobs|function_call|tool_calls)"/.test(JSON.stringify(value));
}

test('an impossible token count is ignored', () => {
  const turn = (usage: object) => {
    const choices = [{ index: 0, message: { role: 'assistant', content: 'x' }, finish_reason: 'stop' }];
    const read = chat.decodeReply({ choices, usage }, {});
    assert.ok('turn' in read);
    return read.turn.usage;
  };
  assert.equal(turn({ prompt_tokens: 1e300, completion_tokens: 2 }), undefined);
  assert.equal(turn({ prompt_tokens: 3, completion_tokens: 9e18 }), undefined);
  assert.equal(
    turn({ prompt_tokens: 3, completion_tokens: 2, prompt_tokens_details: { cached_tokens: 1e300 } })?.cacheRead,
    0,
  );
});

test('the name of an inherited object member is an unknown finish word', () => {
  for (const word of ['constructor', '__proto__', 'toString']) {
    const message = { role: 'assistant', content: 'x' };
    const read = chat.decodeReply({ choices: [{ index: 0, message, finish_reason: word }] }, {});
    assert.ok('turn' in read);
    assert.deepEqual(read.turn.choices[0]?.finish, { unified: 'stop', native: word });
  }
});

test('any complete answer decodes to a turn or a failure, and every turn can be encoded', () => {
  fc.assert(
    fc.property(likely(chunk), (value) => {
      const text = JSON.stringify(value);
      const read = chat.decodeReply(parseJson(text), {});
      if ('failure' in read) return;
      JSON.parse(chat.relay.reply({ text, value: parseJson(text), turn: read.turn, stamp: STAMP, closing: CLOSING }));
      const encoded = JSON.stringify(chat.encodeReply(read.turn, STAMP, CLOSING));
      readWholeChat(encoded);
    }),
    { numRuns: samples(500) },
  );
});

test('any error body decodes to a failure with a message', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(400, 401, 404, 429, 500, 503, 529),
      fc.oneof(
        fc.string(),
        junk.map((value) => JSON.stringify(value)),
        junk.map((value) => JSON.stringify({ error: value })),
        likely(some({ message: junk, type: junk, code: junk })).map((error) => JSON.stringify({ error })),
      ),
      (status, body) => {
        const failure = chat.decodeFailure(status, body);
        assert.ok(typeof failure.message === 'string' && failure.message !== '');
        assert.equal(failure.status, status);
      },
    ),
    { numRuns: samples(300) },
  );
});

test('a number beyond a double in place of an object is repaired like any other number', () => {
  const written = (number: string): unknown => {
    const text = `{"choices":[{"index":0,"message":${number},"finish_reason":"stop"}],"usage":${number}}`;
    const value = parseJson(text);
    const read = chat.decodeReply(value, {});
    assert.ok('turn' in read);
    return JSON.parse(chat.relay.reply({ text, value, turn: read.turn, stamp: STAMP, closing: CLOSING }));
  };
  assert.deepEqual(written('9007199254740993'), written('1'));
});
