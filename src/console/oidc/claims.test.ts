import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withUserInfo } from './claims.ts';

test('an address counts as verified only by what is said of itself', () => {
  const info = { sub: 'a', email: 'own@acme.test', email_verified: true, groups: ['x'] };
  assert.deepEqual(withUserInfo({ sub: 'a' }, info), info);
  assert.deepEqual(withUserInfo({ sub: 'a', email: 'own@acme.test' }, info), info);
  assert.deepEqual(withUserInfo({ sub: 'a', email: 'admin@acme.test' }, info), {
    ...{ sub: 'a', email: 'admin@acme.test', groups: ['x'] },
  });
  const denied = { sub: 'a', email: 'own@acme.test', email_verified: false };
  assert.equal(withUserInfo(denied, info)['email_verified'], false);
  assert.equal(withUserInfo({ sub: 'a', email_verified: true }, denied)['email_verified'], false);
});
