import 'reflect-metadata';
import assert from 'node:assert/strict';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  X509Certificate as Peculiar,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
} from '@peculiar/x509';
import { TestClock } from '../../testing/clock/clock.ts';
import { createAuthority as makeAuthority } from '../index.ts';
import { isReservedVariable, sandboxEnvironment, trustBundle } from './environment.ts';
import { LeafIssuer } from './leaf-issuer.ts';

test('an authority signs certificates for exactly one host, for a day', async () => {
  const clock = new TestClock();
  const authority = await makeAuthority(clock);
  const leaf = new LeafIssuer(authority, clock).issue('xn--bcher-kva.api.test');
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
  const issuer = new LeafIssuer(await makeAuthority(clock), clock);
  const host = `${'a'.repeat(63)}.${'b'.repeat(63)}.test`;
  assert.ok(new X509Certificate(issuer.issue(host).certificate).checkHost(host));
});

test('a certificate is what another library reads, and expires with its authority in the year 2050 or later', async () => {
  const clock = new TestClock();
  const authority = await makeAuthority(clock);
  const issuer = new LeafIssuer(authority, clock);
  const names = Array.from({ length: 300 }, (_, at) => `host-${at}.test`) as [string, ...string[]];
  const leaf = new Peculiar(issuer.issue(...names).certificate);
  assert.equal(leaf.issuer, 'CN=Gatehouse sandbox authority');
  assert.equal(leaf.subject, 'CN=host-0.test');
  assert.ok(
    await leaf.verify({ publicKey: new Peculiar(authority.certificate).publicKey, date: new Date(clock.now()) }),
  );
  const alternative = leaf.getExtension(SubjectAlternativeNameExtension);
  assert.deepEqual(
    alternative?.names.toJSON().map(({ value }) => value),
    names,
  );
  assert.equal(leaf.getExtension(KeyUsagesExtension)?.usages, KeyUsageFlags.digitalSignature);
  assert.equal(leaf.getExtension(ExtendedKeyUsageExtension)?.usages.join(), ExtendedKeyUsage.serverAuth);
  assert.equal(leaf.getExtension(BasicConstraintsExtension)?.ca, false);
  const [key, ofAuthority] = [leaf, new Peculiar(authority.certificate)].map(
    (each) =>
      each.getExtension(AuthorityKeyIdentifierExtension)?.keyId ??
      each.getExtension(SubjectKeyIdentifierExtension)?.keyId,
  );
  assert.equal(key, ofAuthority);
  const later = new TestClock(Date.UTC(2051, 5, 1));
  const late = new LeafIssuer(await makeAuthority(later), later).issue('late.test');
  assert.equal(new X509Certificate(late.certificate).validToDate.getUTCFullYear(), 2051);
});

test('an authority with the key of another one issues nothing', async () => {
  const [one, other] = [await makeAuthority(new TestClock()), await makeAuthority(new TestClock())];
  assert.throws(() => new LeafIssuer({ ...one, key: other.key }, new TestClock()), /not that of the authority/);
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
