import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { test } from 'node:test';
import { ConfigError, loadConfig } from '../config.ts';

const HASH = 'ab'.repeat(32);
const USUAL = {
  id: 'ci',
  issuer: 'https://idp.test',
  audience: 'gatehouse',
  claims: { sub: 'repo:acme/*' },
  key: HASH,
};
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const jwk = { ...rsa.publicKey.export({ format: 'jwk' }), kid: 'one', alg: 'RS256', use: 'sig', x5t: 'of no use here' };

function read(yaml: string) {
  const inputs = { env: { GATEHOUSE_CONFIG: 'a.yaml' }, cwd: '/', cores: 1, readFile: () => yaml };
  return loadConfig({ kinds: [], ...inputs }).federation;
}

const withPolicy = (more: object) => `federation:\n  - ${JSON.stringify({ ...USUAL, ...more })}`;

test('without the section no issuer is trusted', () => {
  assert.deepEqual(read('limits: {}'), []);
  assert.deepEqual(read('federation: []'), []);
});

test('a policy says whose tokens are taken, which of them, and what for', () => {
  const [usual] = read(withPolicy({}));
  assert.deepEqual(usual, {
    id: 'ci',
    issuer: 'https://idp.test',
    audience: ['gatehouse'],
    keys: null,
    claims: [{ name: 'sub', patterns: ['repo:acme/*'] }],
    keyHash: HASH,
    lifetimeMs: 900_000,
  });
  const more = { audience: ['a', 'b'], jwks_uri: 'https://idp.test/keys', lifetime: '5m' };
  const claims = { environment: ['production', 'staging-*'], verified: true, attempt: 1 };
  const [other] = read(withPolicy({ ...more, claims, issuer: 'https://idp.test/tenant/' }));
  assert.equal(other?.issuer, 'https://idp.test/tenant/');
  assert.deepEqual(other.audience, ['a', 'b']);
  assert.equal(other.keys, 'https://idp.test/keys');
  assert.equal(other.lifetimeMs, 300_000);
  assert.deepEqual(other.claims, [
    { name: 'environment', patterns: ['production', 'staging-*'] },
    { name: 'verified', patterns: [true] },
    { name: 'attempt', patterns: [1] },
  ]);
  const { kty, n, e, kid, alg } = jwk;
  assert.deepEqual(read(withPolicy({ jwks: { keys: [jwk] } }))[0]?.keys, [{ kty, n, e, alg, kid }]);
});

test('a modulus with a zero byte in front is the number that it is', () => {
  const n = Buffer.concat([Buffer.alloc(1), Buffer.from(String(jwk.n), 'base64url')]).toString('base64url');
  assert.equal(read(withPolicy({ jwks: { keys: [{ ...jwk, n, e: 'Aw' }] } })).length, 1);
});

test('a wrong policy is named by its line and path', () => {
  const small = generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey.export({ format: 'jwk' });
  const curve = generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).publicKey.export({ format: 'jwk' });
  const cases: [object, RegExp][] = [
    [{ id: undefined }, /federation\[0\] needs the member id/],
    [{ issuer: undefined }, /needs the member issuer/],
    [{ claims: undefined }, /needs the member claims/],
    [{ key: undefined }, /needs the member key/],
    [{ id: 'with space' }, /federation\[0\]\.id must be/],
    [{ issuer: 'http://idp.test' }, /federation\[0\]\.issuer must be an https URL/],
    [{ issuer: 'https://u:p@idp.test' }, /issuer must be an https URL without credential/],
    [{ issuer: 'https://idp.test?x' }, /issuer must be an https URL/],
    [{ issuer: 'idp' }, /issuer must be an https URL/],
    [{ jwks_uri: 'http://10.0.0.1/keys' }, /federation\[0\]\.jwks_uri must be an https URL/],
    [{ audience: [] }, /federation\[0\]\.audience must not be empty/],
    [{ audience: 7 }, /federation\[0\]\.audience must be a text/],
    [{ claims: {} }, /federation\[0\]\.claims must name at least one claim/],
    [{ claims: { aud: 'x' } }, /federation\[0\]\.claims\.aud cannot be set here/],
    [{ claims: { exp: 1 } }, /federation\[0\]\.claims\.exp cannot be set here/],
    [{ claims: { sub: '*' } }, /federation\[0\]\.claims\.sub must not be only \*/],
    [{ claims: { sub: ['repo:x', '**'] } }, /federation\[0\]\.claims\.sub\[1\] must not be only/],
    [{ claims: { sub: [] } }, /federation\[0\]\.claims\.sub must not be empty/],
    [{ claims: { sub: { like: 'x' } } }, /federation\[0\]\.claims\.sub must be a text/],
    [{ key: 'sk-svc-v1-a-secret-in-the-wrong-place' }, /federation\[0\]\.key must be the hash of an inference key/],
    [{ lifetime: '901s' }, /federation\[0\]\.lifetime must be from 30s to 900s/],
    [{ lifetime: '1s' }, /federation\[0\]\.lifetime must be from 30s to 900s/],
    [{ jwks: [] }, /federation\[0\]\.jwks must be a JWK Set/],
    [{ jwks: { keys: [] } }, /federation\[0\]\.jwks\.keys must have from 1 to 100/],
    [{ jwks: { keys: ['x'] } }, /federation\[0\]\.jwks\.keys\[0\] must be a JWK/],
    [{ jwks: { keys: [{ kty: 'oct', k: 'c2VjcmV0' }] } }, /keys\[0\] must have the kty/],
    [{ jwks: { keys: [rsa.privateKey.export({ format: 'jwk' })] } }, /keys\[0\] must be a public key/],
    [{ jwks: { keys: [{ ...jwk, use: 'enc' }] } }, /keys\[0\] must be a key for verifying signatures/],
    [{ jwks: { keys: [{ ...jwk, alg: 'HS256' }] } }, /keys\[0\] must state one of RS256/],
    [{ jwks: { keys: [{ ...jwk, alg: 'ES256' }] } }, /keys\[0\] must state one of RS256/],
    [{ jwks: { keys: [small] } }, /keys\[0\] must have from 2048/],
    [{ jwks: { keys: [{ ...jwk, n: `${'A'.repeat(200)}${small.n}` }] } }, /keys\[0\] must have from 2048/],
    [{ jwks: { keys: [{ ...jwk, n: 'A'.repeat(342) }] } }, /keys\[0\] must have from 2048/],
    [{ jwks: { keys: [{ ...jwk, n: `B${'A'.repeat(1_366)}` }] } }, /keys\[0\] must have from 2048 to 8192/],
    [{ jwks: { keys: [{ ...jwk, n: 'f'.repeat(2_731) }] } }, /keys\[0\] must have from 2048 to 8192/],
    [{ jwks: { keys: [{ ...jwk, e: 'AQ' }] } }, /keys\[0\] must have an odd exponent/],
    [{ jwks: { keys: [{ ...jwk, e: 'AAAAAQ' }] } }, /keys\[0\] must have an odd exponent/],
    [{ jwks: { keys: [{ ...jwk, e: 'AQAA' }] } }, /keys\[0\] must have an odd exponent/],
    [{ jwks: { keys: [{ ...jwk, e: 'A' }] } }, /keys\[0\] must have an odd exponent/],
    [{ jwks: { keys: [curve] } }, /keys\[0\] must have one of the curves/],
    [{ jwks: { keys: [jwk] }, jwks_uri: 'https://idp.test/keys' }, /federation\[0\] has both/],
    [{ lifetme: '5m' }, /did you mean lifetime/],
  ];
  for (const [more, message] of cases) {
    assert.throws(
      () => read(withPolicy(more)),
      (error) => {
        assert.ok(error instanceof ConfigError, String(error));
        assert.match(error.message, message);
        assert.match(error.message, /a\.yaml:2/);
        assert.doesNotMatch(error.message, /secret|sk-svc/);
        return true;
      },
    );
  }
  const twice = `federation: [${JSON.stringify(USUAL)}, ${JSON.stringify(USUAL)}]`;
  assert.throws(() => read(twice), /federation\[1\] has the id of federation\[0\]/);
});
