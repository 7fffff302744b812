/** The binary framing of AWS event streams, tested with bytes that the tests encode themselves. */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import fc from 'fast-check';
import { samples } from '../../testing/laws/samples.ts';
import { awsMessage, corpusMissing, recordings } from '../../testing/recordings/corpus.ts';
import { awsBorders, readAwsMessages } from '../../testing/recordings/recorded-converse.ts';
import { converseFraming, eventStreamReady, invokeFraming } from './bedrock-event-stream.ts';
import type { Framing } from './framing.ts';

before(() => eventStreamReady());

const event = (type: string, payload: string) =>
  awsMessage(
    { ':event-type': type, ':content-type': 'application/json', ':message-type': 'event' },
    Buffer.from(payload),
  );
const exception = (type: string, message: string) =>
  awsMessage({ ':exception-type': type, ':message-type': 'exception' }, Buffer.from(JSON.stringify({ message })));

/** What a reader emits for the pieces. */
function told(framing: Framing, pieces: readonly Buffer[], limitBytes = 1024 * 1024): [string, string][] {
  const events: [string, string][] = [];
  const reader = framing((name, data) => events.push([name, data]), limitBytes);
  for (const piece of pieces) reader.push(piece);
  assert.equal(reader.end(), null);
  assert.equal(reader.stray, '');
  return events;
}

const STREAM = Buffer.concat([
  event('messageStart', '{"role":"assistant"}'),
  event('contentBlockDelta', '{"delta":{"text":"北京 🌤"}}'),
  event('metadata', '{}'),
  exception('throttlingException', 'wait'),
]);
const EVENTS = [
  ['messageStart', '{"role":"assistant"}'],
  ['contentBlockDelta', '{"delta":{"text":"北京 🌤"}}'],
  ['metadata', '{}'],
  [':exception:throttlingException', '{"message":"wait"}'],
];

test('events and exceptions are emitted with their types, cut at every position', () => {
  assert.deepEqual(told(converseFraming, [STREAM]), EVENTS);
  for (let at = 1; at < STREAM.length; at++) {
    assert.deepEqual(told(converseFraming, [STREAM.subarray(0, at), STREAM.subarray(at)]), EVENTS, `cut at ${at}`);
  }
  const bytes = [...STREAM].map((byte) => Buffer.from([byte]));
  assert.deepEqual(told(converseFraming, bytes), EVENTS);
});

test('the events do not depend on how the stream is cut', () => {
  const payloads = fc.array(fc.string({ unit: 'grapheme', maxLength: 2000 }), { maxLength: 12 });
  fc.assert(
    fc.property(payloads, fc.array(fc.nat(), { maxLength: 20 }), (texts, cuts) => {
      const stream = Buffer.concat(texts.map((text) => event('x', JSON.stringify(text))));
      const positions = [...new Set(cuts.map((at) => at % (stream.length + 1)))].sort((a, b) => a - b);
      const pieces = [0, ...positions].map((at, index) => stream.subarray(at, positions[index] ?? stream.length));
      assert.deepEqual(
        told(converseFraming, pieces),
        texts.map((text) => ['x', JSON.stringify(text)]),
      );
    }),
    { numRuns: samples(200) },
  );
});

test('every recorded stream, cut at every position, emits its events', { skip: corpusMissing }, () => {
  const streams = recordings(['converse', 'converse-stream', 'invoke-stream'], /^bedrock$/).filter((one) =>
    one.headers['content-type']?.includes('eventstream'),
  );
  assert.ok(streams.length >= 5);
  for (const { id, bytes } of streams) {
    const expected = readAwsMessages(bytes).map(({ headers, payload }): [string, string] => [
      headers[':event-type'] ?? `:exception:${headers[':exception-type']}`,
      payload,
    ]);
    const borders = [0, ...awsBorders(bytes)];
    assert.deepEqual(told(converseFraming, [bytes]), expected, id);
    // The reader holds no state at a message boundary, so cuts are tried only within neighbouring messages.
    for (let at = 1, message = 0; at < bytes.length; at++) {
      while (borders[message + 1]! <= at) message += 1;
      const [from, to] = [borders[Math.max(0, message - 1)]!, borders[Math.min(borders.length - 1, message + 2)]!];
      const cut = told(converseFraming, [bytes.subarray(from, at), bytes.subarray(at, to)]);
      assert.deepEqual(cut, expected.slice(Math.max(0, message - 1), message + 2), `${id} cut at ${at}`);
    }
  }
});

test('a stream that ends within a message emits the events before it', () => {
  const first = event('a', '{}').length;
  const stream = Buffer.concat([event('a', '{}'), event('b', '{}')]);
  for (let at = first; at < stream.length; at++) {
    assert.deepEqual(told(converseFraming, [stream.subarray(0, at)]), [['a', '{}']]);
  }
});

test('a damaged bit anywhere in a message is detected, and the message is not emitted', () => {
  const whole = event('contentBlockDelta', '{"delta":{"text":"x"}}');
  for (let bit = 0; bit < whole.length * 8; bit++) {
    const damaged = Buffer.from(whole);
    damaged[bit >> 3]! ^= 1 << (bit & 7);
    const events: string[] = [];
    const reader = converseFraming((name) => events.push(name), 1024);
    assert.throws(() => reader.push(damaged), /damaged/, `bit ${bit}`);
    assert.deepEqual(events, []);
  }
});

test('a message over the limit is refused by its first bytes, before it is buffered', () => {
  const huge = event('a', JSON.stringify('x'.repeat(400_000)));
  const reader = converseFraming(() => assert.fail('told'), 1024);
  assert.throws(() => reader.push(huge.subarray(0, 12)), /larger than 1024 bytes/);
  assert.equal(told(converseFraming, [huge], 500_000).length, 1);
});

test('nothing is emitted after stop, not even from the current chunk', () => {
  const events: string[] = [];
  const reader = converseFraming((name) => {
    events.push(name);
    reader.stop();
  }, 1024);
  reader.push(STREAM);
  reader.push(STREAM);
  assert.deepEqual(events, ['messageStart']);
});

test('an invoke stream emits events of the model’s own format, and exceptions as error events', () => {
  const inner = '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"é🌤"}}';
  const chunk = (text: string) =>
    event('chunk', JSON.stringify({ bytes: Buffer.from(text).toString('base64'), p: 'abc' }));
  const stream = Buffer.concat([chunk(inner), chunk('{}'), exception('serviceUnavailableException', 'later')]);
  const error = { type: 'error', error: { type: 'overloaded_error', message: 'later' } };
  for (let at = 1; at < stream.length; at++) {
    assert.deepEqual(told(invokeFraming, [stream.subarray(0, at), stream.subarray(at)]), [
      ['content_block_delta', inner],
      ['', '{}'],
      ['error', JSON.stringify(error)],
    ]);
  }
});

test('an error in message headers is an exception too', () => {
  const error = awsMessage(
    { ':message-type': 'error', ':error-code': 'InternalFailure', ':error-message': 'broken' },
    Buffer.alloc(0),
  );
  assert.deepEqual(told(converseFraming, [error]), [[':exception:InternalFailure', '{"message":"broken"}']]);
});
