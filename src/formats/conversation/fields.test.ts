import assert from 'node:assert/strict';
import test from 'node:test';
import fc from 'fast-check';
import { countOf } from './fields.ts';

test('a fractional count is the nearest whole number, and a part is never more than its total', () => {
  assert.deepEqual([0.4, 1.5, 12.6, 7].map(countOf), [0, 2, 13, 7]);
  const amount = fc.double({ min: 0, max: 1e9, noNaN: true });
  fc.assert(
    fc.property(amount, amount, (part, rest) => {
      const [counted, total] = [countOf(part), countOf(Math.min(part + rest, 1e9))];
      assert.ok(Number.isInteger(counted) && Math.abs(counted - part) <= 0.5 && counted <= total);
    }),
  );
});

test('what cannot be a count is 0', () => {
  for (const value of [-1, Number.NaN, Number.POSITIVE_INFINITY, 1e10, '7', null, undefined, {}]) {
    assert.equal(countOf(value), 0, String(value));
  }
});
