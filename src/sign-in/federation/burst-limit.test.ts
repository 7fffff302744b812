import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BurstLimit, clientOf } from './burst-limit.ts';

test('a burst, then the sustained rate, separately for each name', () => {
  const pace = new BurstLimit({ perSecond: 2, atOnce: 3 });
  assert.deepEqual(
    [0, 0, 0, 0].map((now) => pace.take('a', now)),
    [0, 0, 0, 500],
  );
  assert.equal(pace.take('b', 0), 0);
  assert.equal(pace.take('a', 400), 100);
  assert.equal(pace.take('a', 500), 0);
  assert.equal(pace.take('a', 500), 500);
  assert.deepEqual(
    [9_000, 9_000, 9_000, 9_000].map((now) => pace.take('a', now)),
    [0, 0, 0, 500],
  );
});

test('beyond the maximum only the least recently seen name is dropped', () => {
  const pace = new BurstLimit({ perSecond: 1, atOnce: 1 });
  assert.equal(pace.take('first', 0), 0);
  assert.equal(pace.take('second', 0), 0);
  for (let count = 0; count < 9_999; count++) pace.take(`name-${count}`, 0);
  assert.equal(pace.take('second', 0), 1_000);
  assert.equal(pace.take('first', 0), 0);
});

test('an IPv6 network counts as one client in any notation of its addresses', () => {
  assert.equal(clientOf('192.0.2.1'), '192.0.2.1');
  assert.equal(clientOf('::ffff:192.0.2.1'), '192.0.2.1');
  assert.equal(clientOf('2001:db8::1'), clientOf('2001:db8:0:0:ffff::2'));
  assert.notEqual(clientOf('2001:db8::1'), clientOf('2001:db8:0:1::1'));
  assert.equal(clientOf(undefined), '');
});
