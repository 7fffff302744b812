import assert from 'node:assert/strict';
import { test } from 'node:test';
import { postalAddresses } from './addresses.ts';

test('long words with dashes and dots take linear time', () => {
  const began = performance.now();
  for (const unit of ['ruea-', 'A-', 'A.', "d'"]) {
    const text = `1 ${unit.repeat(100_000 / unit.length)}\n\n12 Main Street`;
    const last = postalAddresses(text).at(-1);
    assert.equal(text.slice(last?.start, last?.end), '12 Main Street');
  }
  // Some milliseconds; in quadratic time it was half a minute each.
  assert.ok(performance.now() - began < 10_000);
});
