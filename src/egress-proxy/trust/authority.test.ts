import assert from 'node:assert/strict';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import { TestClock } from '../../testing/clock/clock.ts';
import { createAuthority as makeAuthority } from '../index.ts';
import { LeafIssuer } from './authority.ts';
import { isReservedVariable, sandboxEnvironment, trustBundle } from './environment.ts';

test('an authority signs certificates for exactly one host, for a day', async () => {
  const clock = new TestClock();
  const authority = await makeAuthority(clock);
  const issuer = await LeafIssuer.create(authority, clock);
  const leaf = await issuer.issue('xn--bcher-kva.api.test');
  const certificate = new X509Certificate(leaf.certificate);
  const root = new X509Certificate(authority.certificate);
  assert.ok(root.ca && !certificate.ca);
  assert.ok(root.checkPrivateKey(createPrivateKey(authority.key)));
  assert.ok(certificate.checkPrivateKey(createPrivateKey(leaf.key)));
  assert.ok(certificate.verify(root.publicKey) && certificate.checkIssued(root));
  assert.equal(certificate.subjectAltName, 'DNS:xn--bcher-kva.api.test');
  assert.equal(certificate.publicKey.asymmetricKeyDetails?.namedCurve, 'prime256v1');
  assert.equal(leaf.expiresAt, clock.now() + 86_400_000);
  assert.ok(Math.abs(certificate.validToDate.getTime() - leaf.expiresAt) < 1000);
  assert.ok(certificate.validFromDate.getTime() < clock.now());
  assert.ok(root.validToDate.getTime() - clock.now() > 9 * 365 * 86_400_000);
});

test('a host whose name is too long for a common name has a certificate, too', async () => {
  const clock = new TestClock();
  const issuer = await LeafIssuer.create(await makeAuthority(clock), clock);
  const host = `${'a'.repeat(63)}.${'b'.repeat(63)}.test`;
  assert.ok(new X509Certificate((await issuer.issue(host)).certificate).checkHost(host));
});

test('the trust bundle is a list of certificates that ends with the authority', async () => {
  const { certificate } = await makeAuthority(new TestClock());
  const extra = (await makeAuthority(new TestClock())).certificate.trimEnd();
  const all = trustBundle(certificate, extra).match(/-----BEGIN CERTIFICATE-----\n[^-]+\n-----END CERTIFICATE-----\n/g);
  assert.ok(all !== null && all.length > 2);
  assert.equal(all.at(-1), certificate);
  assert.equal(all.at(-2), `${extra}\n`);
  for (const pem of all) new X509Certificate(pem);
});

test('the variables of the proxy and of the runtime cannot be the names of secrets', () => {
  for (const name of [...Object.keys(sandboxEnvironment('/x')), 'PATH', 'LD_PRELOAD', 'NODE_OPTIONS', 'https_proxy']) {
    assert.ok(isReservedVariable(name), name);
  }
  assert.ok(!isReservedVariable('GITHUB_TOKEN'));
});
