import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { samples } from '../testing/laws/samples.ts';
import { type JsonDocument, readDocument } from './json.ts';
import { DocumentReader } from './json-pieces.ts';

const RUNS = samples(1500, 20_000);
/** So small that every place is at some end. */
const sizes = fc.record({
  step: fc.integer({ min: 1, max: 9 }),
  window: fc.integer({ min: 1, max: 9 }),
  run: fc.integer({ min: 0, max: 9 }),
});

type Sizes = ConstructorParameters<typeof DocumentReader>[2];

function inPieces(bytes: Buffer, maxDepth: number | undefined, small: Sizes): JsonDocument {
  const reader = new DocumentReader(bytes, maxDepth === undefined ? {} : { maxDepth }, small);
  for (let steps = 0; ; steps += 1) {
    const document = reader.step();
    if (document !== undefined) return document;
    assert.ok(steps <= bytes.length, 'each step reads on');
  }
}

function outcome(read: () => JsonDocument): unknown {
  try {
    const { members, ascii, structure, value, exact } = read();
    return { members, ascii, structure, value, exact: JSON.stringify(exact) };
  } catch (error) {
    return String(error);
  }
}

function assertSame(bytes: Buffer, small: Sizes, maxDepth?: number): void {
  const limits = maxDepth === undefined ? {} : { maxDepth };
  assert.deepEqual(
    outcome(() => inPieces(bytes, maxDepth, small)),
    outcome(() => readDocument(bytes, limits)),
  );
}

const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom('a', 'é', '東京', '\\', '"', '__proto__', '\ud83d'),
);
const document = fc.dictionary(
  text,
  fc.oneof(fc.jsonValue({ stringUnit: 'binary' }), fc.array(fc.jsonValue({ stringUnit: 'binary' }))),
);

test('a document that is read in pieces is the same as one that is read at once', () => {
  fc.assert(
    fc.property(document, sizes, fc.constantFrom(undefined, '\t', '  '), (value, small, space) => {
      assertSame(Buffer.from(JSON.stringify(value, null, space)), small);
    }),
    { numRuns: RUNS },
  );
});

/** Pieces of JSON in any order: now and then valid, mostly broken at some place. */
const piece = fc.constantFrom(
  ...[
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"a"',
    '"b"',
    '"é"',
    '"\\u0061"',
    '"__proto__"',
    '""',
    '1',
    '12345678901234567890',
    '1e5',
    '-',
    'true',
    'nul',
  ],
  ...[
    ' ',
    '\n',
    '\u0001',
    '\u00a0',
    '"\\ud83d"',
    '"x',
    '{"a":1}',
    '[1,2]',
    '[]',
    '{}',
    '[[',
    ']]',
    ':[',
    '],',
    '"a":',
    ',"b":',
  ],
);

test('what is no valid document is refused with the same words', () => {
  fc.assert(
    fc.property(
      fc.array(piece, { maxLength: 12 }),
      sizes,
      fc.constantFrom(undefined, 1, 2, 3),
      (pieces, small, maxDepth) => {
        assertSame(Buffer.from(`{"m":[${pieces.join('')}`), small, maxDepth);
        assertSame(Buffer.from(`{"m":[${pieces.join('')}]}`), small, maxDepth);
        assertSame(Buffer.from(`{"a":${pieces.join('')}}`), small, maxDepth);
        assertSame(Buffer.from(pieces.join('')), small, maxDepth);
      },
    ),
    { numRuns: RUNS },
  );
});

test('a document that is cut or has a byte changed has the same outcome', () => {
  fc.assert(
    fc.property(document, sizes, fc.nat(), fc.nat({ max: 255 }), (value, small, place, byte) => {
      const bytes = Buffer.from(JSON.stringify(value));
      assertSame(bytes.subarray(0, place % (bytes.length + 1)), small);
      bytes[place % bytes.length] = byte;
      assertSame(bytes, small);
    }),
    { numRuns: RUNS },
  );
});

test('too many values are refused, in one list, over several and in depth', () => {
  const small = { step: 4096, window: 4096, run: 512 };
  const many = new Array(125_001).fill(1);
  for (const value of [{ a: [...many, ...many] }, { a: many, b: many }, { a: [many, [many]] }]) {
    assertSame(Buffer.from(JSON.stringify(value)), small);
  }
});

test('a large value is read in linear time', () => {
  const body = Buffer.from(
    JSON.stringify({ model: 'm', messages: [{ content: 'é'.repeat(4_000_000) }], stream: true }),
  );
  const reader = new DocumentReader(body);
  while (reader.step() === undefined);
  assertSame(body, undefined);
});
