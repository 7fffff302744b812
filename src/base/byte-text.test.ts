import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { samples } from '../testing/laws/samples.ts';
import {
  byteText,
  byteTextOf,
  byteTextsIn,
  joinedByteText,
  parseByteText,
  readable,
  readableIn,
  readableStart,
  unitsOf,
} from './byte-text.ts';

/** Any UTF-16 units, half surrogate pairs included. */
const anyText = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.array(fc.integer({ min: 0, max: 0xffff })).map((units) => String.fromCharCode(...units)),
);

/** JSON of a value in which some characters are written as escapes. */
const spelled = fc
  .tuple(fc.jsonValue({ stringUnit: 'binary' }), fc.infiniteStream(fc.boolean()))
  .map(([value, escapes]) =>
    JSON.stringify(value).replace(/[\u0080-\uffff]/g, (unit) =>
      escapes.next().value ? `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}` : unit,
    ),
  );

test('byte text is the bytes of a text, and is read back as the same text', () => {
  fc.assert(
    fc.property(anyText, (text) => {
      assert.equal(readable(byteText(text)), text);
      if (text.isWellFormed()) assert.equal(byteText(text), Buffer.from(text).toString('latin1'));
    }),
  );
});

test('bytes as byte text are what a decoder makes of them, ill-formed or not', () => {
  fc.assert(
    fc.property(fc.uint8Array(), (given) => {
      const bytes = Buffer.from(given);
      assert.equal(readable(byteTextOf(bytes)), bytes.toString('utf8'));
    }),
  );
});

test('a byte text that is cut anywhere is read as the start of its text, without half a character', () => {
  fc.assert(
    fc.property(anyText, fc.nat(), (text, at) => {
      const bytes = byteText(text);
      const start = readableStart(bytes.slice(0, at % (bytes.length + 1)));
      assert.equal(start, text.slice(0, start.length));
      assert.ok((at % (bytes.length + 1)) - byteText(start).length < 4);
    }),
  );
});

test('the size of a text is known from its byte text', () => {
  fc.assert(fc.property(anyText, (text) => assert.equal(unitsOf(byteText(text)), text.length)));
});

test('JSON as byte text has the same value, whatever is written with escapes', () => {
  fc.assert(
    fc.property(spelled, (json) => {
      const value: unknown = JSON.parse(json.toWellFormed());
      const read = parseByteText(byteText(json.toWellFormed()));
      assert.deepEqual(readableIn(read), value);
      assert.deepEqual(byteTextsIn(value), read);
    }),
    { numRuns: samples(1000) },
  );
});

test('an escaped backslash before a u is no escape, and half a surrogate pair stays half', () => {
  assert.equal(parseByteText('"\\\\u00e9 \\u00e9 \\ud83d"'), '\\u00e9 \u00c3\u00a9 \ud83d');
});

test('two halves of a surrogate pair that are joined become one character', () => {
  fc.assert(
    fc.property(anyText, anyText, (one, other) => {
      const joined = joinedByteText(byteText(one) + byteText(other));
      assert.equal(Buffer.from(joined, 'latin1').toString('utf8'), (one + other).toWellFormed());
    }),
  );
});
