/** Both encodings say the same, as a decoder reads it that shares no code with them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { samples } from '../testing/laws/samples.ts';
import { decodeTraces } from '../testing/upstream/otlp-decoder.ts';
import {
  type Attributes,
  JSON_TRACES,
  PROTOBUF_TRACES,
  type Source,
  type Span,
  SpanKind,
  type TraceEncoding,
} from './index.ts';

interface WholeSpan extends Span {
  attributes: Attributes;
  error: string | null;
}

const text = fc
  .oneof(fc.string({ unit: 'binary', maxLength: 400 }), fc.string({ maxLength: 40 }))
  .map((each) => each.toWellFormed());
const value = fc.oneof(
  text,
  fc.boolean(),
  fc.maxSafeInteger(),
  fc.double({ noNaN: true, noDefaultInfinity: true }).filter((each) => !Object.is(each, -0)),
  fc.array(text, { maxLength: 4 }),
  fc.constantFrom(null, undefined),
);
const attributes = fc.dictionary(
  text.filter((key) => key !== '__proto__'),
  value,
  { maxKeys: 8 },
);
const digits = (count: number) =>
  fc.uint8Array({ minLength: count, maxLength: count }).map((bytes) => Buffer.from(bytes).toString('hex'));
const time = fc.double({ min: 1.7e12, max: 1.9e12, noNaN: true });
const span: fc.Arbitrary<WholeSpan> = fc.record({
  traceId: digits(16),
  spanId: digits(8),
  parentSpanId: fc.option(digits(8)),
  name: text,
  kind: fc.constantFrom(...Object.values(SpanKind)),
  startedAt: time,
  endedAt: time,
  attributes,
  error: fc.option(text),
});
const source: fc.Arbitrary<Source> = fc.record({ resource: attributes, name: text, version: text, schemaUrl: text });

function decoded(encoding: TraceEncoding, of: Source, spans: readonly WholeSpan[], cut: number) {
  const writer = encoding.writer();
  const pieces: Buffer[] = [];
  for (const [index, each] of spans.entries()) {
    writer.begin(each);
    writer.attributes(each.attributes);
    writer.end(each.error);
    if (index === cut) pieces.push(writer.take());
  }
  if (writer.size > 0) pieces.push(writer.take());
  return decodeTraces(encoding.body(of, pieces), encoding.contentType);
}

/** The precision of a time of today as a double. */
const NANOSECONDS_APART = 300n;

test('spans decode to what was encoded, in both encodings, however they are cut into pieces', () => {
  fc.assert(
    fc.property(source, fc.array(span, { minLength: 1, maxLength: 5 }), fc.nat(4), (of, spans, cut) => {
      for (const encoding of [JSON_TRACES, PROTOBUF_TRACES]) {
        const [traces, ...more] = decoded(encoding, of, spans, cut);
        assert.deepEqual(more, []);
        assert.deepEqual(traces!.resource, present(of.resource));
        assert.deepEqual({ ...traces!.scope }, { name: of.name, version: of.version });
        assert.equal(traces!.schemaUrl, of.schemaUrl);
        assert.equal(traces!.spans.length, spans.length);
        for (const [index, { startNano, endNano, ...read }] of traces!.spans.entries()) {
          const { startedAt, endedAt, parentSpanId, error, attributes: given, ...same } = spans[index]!;
          assert.deepEqual(read, {
            ...same,
            parentSpanId: parentSpanId ?? undefined,
            attributes: present(given),
            status: { code: error === null ? 0 : 2, message: error ?? '' },
          });
          assertNear(startNano, startedAt);
          assertNear(endNano, endedAt);
        }
      }
    }),
    { numRuns: samples(200) },
  );
});

function present(given: Attributes) {
  return Object.fromEntries(Object.entries(given).filter(([, each]) => each !== null && each !== undefined));
}

function assertNear(nano: bigint, ms: number): void {
  const exact = BigInt(Math.floor(ms)) * 1_000_000n + BigInt(Math.floor((ms % 1) * 1e6));
  const apart = nano - exact;
  assert.ok(apart < NANOSECONDS_APART && apart > -NANOSECONDS_APART, `${nano} is not ${exact}`);
}

test('a payload without spans is empty in both encodings', () => {
  const of = { resource: {}, name: 'a', version: '1', schemaUrl: '' };
  assert.equal(JSON_TRACES.body(of, []).toString(), '{"resourceSpans":[]}');
  assert.equal(PROTOBUF_TRACES.body(of, []).length, 0);
  assert.deepEqual(decoded(JSON_TRACES, of, [], 0), []);
  assert.deepEqual(decoded(PROTOBUF_TRACES, of, [], 0), []);
});
