import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { GatewayError } from '../base/errors.ts';
import { rangeOf } from './download.ts';

const TAG = '"tag"';
const WHOLE: (string | undefined)[] = [
  ...[undefined, '', 'bytes', 'bytes=', 'bytes=-', 'items=0-1', 'bytes=a-b', 'bytes=5-4', 'bytes=0-1,3-4'],
  ...['bytes=1.5-2', 'bytes=0x1-5', 'bytes=--5'],
];

test('what is not one byte range means the whole content', () => {
  for (const range of WHOLE) assert.equal(rangeOf({ range }, 10, TAG), undefined, String(range));
});

test('a range is the same bytes as a slice of the content, and a range without bytes is refused', () => {
  const position = fc.option(fc.nat(30), { nil: undefined });
  fc.assert(
    fc.property(fc.nat(20), position, position, (bytes, first, last) => {
      fc.pre(first !== undefined || last !== undefined);
      fc.pre(first === undefined || last === undefined || first <= last);
      const content = Array.from({ length: bytes }, (_, n) => n);
      // slice(-0) would be everything.
      const suffix = last === 0 ? [] : content.slice(-last!);
      const expected = first === undefined ? suffix : content.slice(first, last === undefined ? undefined : last + 1);
      const read = () => rangeOf({ range: `bytes=${first ?? ''}-${last ?? ''}` }, bytes, TAG)!;
      if (expected.length > 0) assert.deepEqual(content.slice(read().start, read().end), expected);
      else assert.throws(read, (error) => error instanceof GatewayError && error.status === 416);
    }),
  );
});

test('numbers beyond what a number holds are outside of the content, or mean its end', () => {
  assert.throws(() => rangeOf({ range: `bytes=${'9'.repeat(400)}-` }, 10, TAG), GatewayError);
  assert.deepEqual(rangeOf({ range: `bytes=3-${'9'.repeat(400)}` }, 10, TAG), { start: 3, end: 10 });
  assert.deepEqual(rangeOf({ range: `bytes=-${'9'.repeat(400)}` }, 10, TAG), { start: 0, end: 10 });
});

test('a client that knows another version gets the whole content', () => {
  const range = 'bytes=2-3';
  assert.deepEqual(rangeOf({ range, 'if-range': TAG }, 10, TAG), { start: 2, end: 4 });
  for (const other of ['"other"', `W/${TAG}`, 'Sun, 06 Nov 1994 08:49:37 GMT', '']) {
    assert.equal(rangeOf({ range, 'if-range': other }, 10, TAG), undefined, other);
  }
});
