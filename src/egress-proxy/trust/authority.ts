/**
 * The certificate authority of a vault, and the certificates that the proxy presents in place of a host. Loading this file
 * takes a tenth of a second, so the gateway loads it on first use.
 */
import 'reflect-metadata';
import { createPrivateKey, randomBytes } from 'node:crypto';
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509';
import type { Clock } from '../../base/clock.ts';

/** Both in PEM. The key must be stored encrypted (`sealing/`). */
export interface Authority {
  certificate: string;
  key: string;
}

/** A certificate for one host, with the key that all leaves of an authority share. Both in PEM. */
export interface Leaf {
  certificate: string;
  key: string;
  /** Wall time in milliseconds. */
  expiresAt: number;
}

type KeyPair = Awaited<ReturnType<typeof makeKeys>>;

const KEY = { name: 'ECDSA', namedCurve: 'P-256' };
const SIGNING = { name: 'ECDSA', hash: 'SHA-256' };
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const AUTHORITY_DAYS = 3_650;
const LEAF_DAYS = 1;
/** Clocks of sandboxes on other machines may be behind. */
const SKEW_MS = HOUR_MS;
/** The most characters of a common name (X.520). */
const LONGEST_COMMON_NAME = 64;

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

/** Issues the certificates of one authority. */
export class LeafIssuer {
  readonly #authority: X509Certificate;
  readonly #signingKey: CryptoKey;
  readonly #leafKeys: KeyPair;
  readonly #leafKey: string;
  readonly #clock: Clock;

  private constructor(clock: Clock, authority: X509Certificate, signingKey: CryptoKey, leaf: [KeyPair, string]) {
    this.#clock = clock;
    this.#authority = authority;
    this.#signingKey = signingKey;
    [this.#leafKeys, this.#leafKey] = leaf;
  }

  /** @throws if the authority's PEM texts are malformed */
  static async create({ certificate, key }: Authority, clock: Clock): Promise<LeafIssuer> {
    const der = createPrivateKey(key).export({ type: 'pkcs8', format: 'der' });
    const signingKey = await crypto.subtle.importKey('pkcs8', new Uint8Array(der), KEY, false, ['sign']);
    const leafKeys = await makeKeys();
    return new LeafIssuer(clock, new X509Certificate(certificate), signingKey, [
      leafKeys,
      await keyPem(leafKeys.privateKey),
    ]);
  }

  /** @param host a name in canonical form @param more names of the same certificate */
  async issue(host: string, ...more: string[]): Promise<Leaf> {
    const expiresAt = Math.min(this.#clock.now() + LEAF_DAYS * DAY_MS, this.#authority.notAfter.getTime());
    const certificate = await X509CertificateGenerator.create({
      serialNumber: serialNumber(),
      subject: host.length <= LONGEST_COMMON_NAME ? `CN=${host}` : 'CN=sandbox',
      issuer: this.#authority.subject,
      notBefore: new Date(this.#clock.now() - SKEW_MS),
      notAfter: new Date(expiresAt),
      signingAlgorithm: SIGNING,
      publicKey: this.#leafKeys.publicKey,
      signingKey: this.#signingKey,
      extensions: [
        new SubjectAlternativeNameExtension([host, ...more].map((value) => ({ type: 'dns', value }))),
        new BasicConstraintsExtension(false, undefined, true),
        new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
        new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
        await AuthorityKeyIdentifierExtension.create(this.#authority.publicKey),
      ],
    });
    return { certificate: pem(certificate.toString('pem')), key: this.#leafKey, expiresAt };
  }
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
