import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { isBlank, type Line, Lines } from './lines.ts';

function read(chunks: readonly Buffer[], mostBytes = 1_000): Line[] {
  const lines = new Lines(mostBytes);
  return [...chunks.flatMap((chunk) => [...lines.read(chunk)]), ...lines.end()];
}

/** The text in pieces of these sizes, repeated to its end. */
function cut(text: Buffer, sizes: readonly number[]): Buffer[] {
  const chunks: Buffer[] = [];
  for (let at = 0, n = 0; at < text.length; n += 1) {
    const size = sizes[n % sizes.length]!;
    chunks.push(text.subarray(at, at + size));
    at += size;
  }
  return chunks;
}

test('the lines of a text come out with their numbers, however the text is cut', () => {
  const line = fc.string({ unit: fc.constantFrom('a', '{', '"', ' ', '\r', '世', '\u2028') });
  const sizes = fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1 });
  fc.assert(
    fc.property(fc.array(line), sizes, fc.boolean(), (lines, cuts, isEnded) => {
      const text = Buffer.from(lines.join('\n') + (isEnded ? '\n' : ''));
      const expected = text.toString().split('\n');
      if (expected.at(-1) === '') expected.pop();
      assert.deepEqual(
        read(cut(text, cuts)).map(({ number, bytes }) => [number, bytes?.toString()]),
        expected.map((each, n) => [n + 1, each]),
      );
    }),
  );
});

test('a line that is too long comes out without its bytes, and the next one whole', () => {
  const text = Buffer.from(`${'x'.repeat(10)}\n${'y'.repeat(11)}\nz\n${'w'.repeat(12)}`);
  for (let size = 1; size <= text.length; size += 1) {
    assert.deepEqual(
      read(cut(text, [size]), 10).map(({ number, bytes }) => [number, bytes?.toString()]),
      [
        [1, 'x'.repeat(10)],
        [2, undefined],
        [3, 'z'],
        [4, undefined],
      ],
    );
  }
});

test('a byte order mark is no part of the first line', () => {
  const marked = read(cut(Buffer.from('\ufeffone\n\ufefftwo'), [2])).map(({ bytes }) => bytes!.toString());
  assert.deepEqual(marked, ['one', '\ufefftwo']);
  assert.ok(isBlank(Buffer.from(' \t\r')) && isBlank(Buffer.alloc(0)) && !isBlank(Buffer.from(' 0')));
});
