/** The certificate authority of a vault. Loading this file takes a tenth of a second, so the gateway loads it on first use. */
import 'reflect-metadata';
import { createPrivateKey, randomBytes } from 'node:crypto';
import {
  BasicConstraintsExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectKeyIdentifierExtension,
  X509CertificateGenerator,
} from '@peculiar/x509';
import type { Clock } from '../../base/clock.ts';

/** Both in PEM. The key must be stored encrypted (`sealing/`). */
export interface Authority {
  certificate: string;
  key: string;
}

const KEY = { name: 'ECDSA', namedCurve: 'P-256' };
const SIGNING = { name: 'ECDSA', hash: 'SHA-256' };
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const AUTHORITY_DAYS = 3_650;
/** Clocks of sandboxes on other machines may be behind. */
const SKEW_MS = HOUR_MS;

/** A new authority. It can sign certificates of hosts, but no further authorities. */
export async function makeAuthority(clock: Clock): Promise<Authority> {
  const keys = await makeKeys();
  const certificate = await X509CertificateGenerator.createSelfSigned({
    serialNumber: serialNumber(),
    name: 'CN=Gatehouse sandbox authority',
    notBefore: new Date(clock.now() - SKEW_MS),
    notAfter: new Date(clock.now() + AUTHORITY_DAYS * DAY_MS),
    signingAlgorithm: SIGNING,
    keys,
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { certificate: pem(certificate.toString('pem')), key: await keyPem(keys.privateKey) };
}

function makeKeys() {
  return crypto.subtle.generateKey(KEY, true, ['sign', 'verify']);
}

/** Positive, as its first bit is zero. */
function serialNumber(): string {
  const bytes = randomBytes(16);
  bytes[0] = (bytes[0]! & 0x7f) | 0x40;
  return bytes.toString('hex');
}

async function keyPem(key: CryptoKey): Promise<string> {
  const der = Buffer.from(await crypto.subtle.exportKey('pkcs8', key));
  return createPrivateKey({ key: der, type: 'pkcs8', format: 'der' }).export({
    type: 'pkcs8',
    format: 'pem',
  }) as string;
}

/** PEM texts are joined, so each ends with a line break. */
function pem(text: string): string {
  return text.endsWith('\n') ? text : `${text}\n`;
}
