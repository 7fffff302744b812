import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { userOf, userRange } from './users.ts';

test('users of sandboxes are among those that the process may have', () => {
  assert.equal(userRange('         0          0 4294967295\n')?.first, 0x7000_0000);
  assert.deepEqual(userRange('0 100000 65536\n'), { first: 30_000, count: 30_000 });
  assert.equal(userRange('0 1000 1\n'), null);
  assert.equal(userRange(''), null);
});

test('an id has the same user always, and another id most likely another', () => {
  const range = userRange('0 0 4294967295')!;
  fc.assert(
    fc.property(fc.uuid(), fc.uuid(), (one, other) => {
      const user = userOf(one, range);
      assert.equal(userOf(one, range), user);
      assert.ok(user >= range.first && user < range.first + range.count);
      if (one !== other) assert.notEqual(userOf(other, range), user);
    }),
  );
});
