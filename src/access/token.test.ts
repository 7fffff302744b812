import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { GatewayError } from '../base/errors.ts';
import { createToken, hashToken, isToken, maskToken, presentedToken } from './token.ts';

const refused = (message: RegExp) => (error: unknown) =>
  error instanceof GatewayError &&
  error.status === 401 &&
  error.type === 'authentication' &&
  message.test(error.message);

test('a token is 256 random bits after a prefix that shows its kind', () => {
  assert.match(createToken('inference'), /^sk-svc-v1-[0-9a-f]{64}$/);
  assert.match(createToken('management'), /^sk-svc-mgmt-v1-[0-9a-f]{64}$/);
  assert.notEqual(createToken('inference'), createToken('inference'));
});

test('the public id of a key is the SHA-256 of its token', () => {
  assert.equal(hashToken('abc'), 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
});

test('a mask shows three characters of each end', () => {
  assert.equal(maskToken(`sk-svc-v1-abc${'0'.repeat(58)}xyz`), 'sk-svc-v1-abc...xyz');
  assert.equal(maskToken(`sk-svc-mgmt-v1-abc${'0'.repeat(58)}xyz`), 'sk-svc-mgmt-v1-abc...xyz');
  assert.equal(maskToken(`sk-or-v1-abc${'0'.repeat(58)}xyz`), 'sk-or-v1-abc...xyz');
});

test('a mask never shows more than six characters of a secret, and nothing of a short one', () => {
  const character = fc.constantFrom(...'abcdefghijklmnopqrstuvwxyz0123456789-_');
  const secrets = fc.string({ unit: character, minLength: 1, maxLength: 100 });
  fc.assert(
    fc.property(secrets, (secret) => {
      const shown = maskToken(secret)
        .replace(/^sk-[a-z]+(-mgmt)?-v1-/, '')
        .replace('...', '');
      assert.ok(shown.length <= 6);
      if (secret.length < 24) assert.equal(shown, '');
    }),
  );
});

test('a bearer token is found in any spelling of the scheme', () => {
  for (const scheme of ['Bearer ', 'bearer ', 'BEARER ', 'Bearer   ']) {
    assert.equal(presentedToken({ authorization: `${scheme}secret` }), 'secret');
  }
});

test('x-api-key is read when there is no bearer token', () => {
  assert.equal(presentedToken({ 'x-api-key': 'secret' }), 'secret');
  assert.equal(presentedToken({ authorization: 'Basic dXNlcjpwYXNz', 'x-api-key': 'secret' }), 'secret');
  assert.equal(presentedToken({ authorization: 'Bearer ', 'x-api-key': 'secret' }), 'secret');
});

test('a bearer token decides when both headers are present and differ', () => {
  assert.equal(presentedToken({ authorization: 'Bearer ours', 'x-api-key': 'a-vendors' }), 'ours');
});

test('a missing or malformed token is refused with 401 and an explanation how to send one', () => {
  assert.throws(() => presentedToken({}), refused(/No API key was given.*Authorization: Bearer/));
  assert.throws(() => presentedToken({ 'x-api-key': '' }), refused(/No API key/));
  assert.throws(() => presentedToken({ authorization: 'secret' }), refused(/not a bearer token/));
  assert.throws(() => presentedToken({ authorization: 'Bearer' }), refused(/not a bearer token/));
  assert.throws(() => presentedToken({ authorization: 'Bearer two words' }), refused(/not valid/));
  // Node joins repeated headers that have no special rule.
  assert.throws(() => presentedToken({ 'x-api-key': 'one, two' }), refused(/not valid/));
  assert.throws(() => presentedToken({ authorization: `Bearer ${'a'.repeat(513)}` }), refused(/not valid/));
});

test('a refusal of a token does not repeat it', () => {
  const token = 'canary token with spaces';
  assert.throws(
    () => presentedToken({ authorization: `Bearer ${token}` }),
    (error) => error instanceof GatewayError && !JSON.stringify([error.message, error.details]).includes('canary'),
  );
});

test('a token is visible ASCII of bounded length', () => {
  assert.ok(isToken('a'));
  assert.ok(isToken('a'.repeat(512)));
  for (const text of ['', 'a'.repeat(513), 'a b', 'a\n', 'é', '\u{1f511}']) assert.ok(!isToken(text), text);
});
