/**
 * The certificates that the proxy presents in place of a host. Written byte by byte: a library took as long for one as everything
 * else that happens for a new host.
 */
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
  X509Certificate,
} from 'node:crypto';
import type { Clock } from '../../base/clock.ts';
import type { Authority } from './authority.ts';
import * as der from './der.ts';

/** A certificate for one host, with the key that all leaves of an authority share. Both in PEM. */
export interface Leaf {
  certificate: string;
  key: string;
  /** Wall time in milliseconds. */
  expiresAt: number;
}

const HOUR_MS = 3_600_000;
const LEAF_MS = 24 * HOUR_MS;
/** Clocks of sandboxes on other machines may be behind. */
const SKEW_MS = HOUR_MS;
/** The most characters of a common name (X.520). */
const LONGEST_COMMON_NAME = 64;
/** Of an uncompressed point of P-256. */
const POINT_BYTES = 65;

const ECDSA_WITH_SHA256 = der.sequence(der.objectId('2a8648ce3d040302'));
const VERSION_3 = der.element(0xa0, der.integer(Buffer.from([2])));
const COMMON_NAME = der.objectId('550403');
const NOT_AN_AUTHORITY = extension('551d13', true, der.sequence());
const DIGITAL_SIGNATURE = extension('551d0f', true, der.bits(Buffer.from([0x80]), 7));
const SERVER = extension('551d25', false, der.sequence(der.objectId('2b06010505070301')));

/** Issues the certificates of one authority. */
export class LeafIssuer {
  readonly #clock: Clock;
  readonly #signingKey: KeyObject;
  readonly #issuer: Buffer;
  readonly #authorityKeyId: Buffer;
  readonly #expiresAt: number;
  readonly #publicKey: Buffer;
  readonly #key: string;

  /** @throws Error if the authority's PEM texts are malformed or do not belong together */
  constructor({ certificate, key }: Authority, clock: Clock) {
    this.#clock = clock;
    this.#signingKey = createPrivateKey(key);
    const authority = new X509Certificate(certificate);
    if (!authority.checkPrivateKey(this.#signingKey)) throw new Error('the key is not that of the authority');
    this.#issuer = subjectOf(authority.raw);
    this.#expiresAt = authority.validToDate.getTime();
    const point = createPublicKey(this.#signingKey).export({ type: 'spki', format: 'der' }).subarray(-POINT_BYTES);
    const keyId = createHash('sha1').update(point).digest();
    this.#authorityKeyId = extension('551d23', false, der.sequence(der.element(0x80, keyId)));
    const leaf = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    this.#publicKey = leaf.publicKey.export({ type: 'spki', format: 'der' });
    this.#key = leaf.privateKey.export({ type: 'pkcs8', format: 'pem' }) as string;
  }

  /** @param host a name in canonical form @param more names of the same certificate */
  issue(host: string, ...more: string[]): Leaf {
    const now = this.#clock.now();
    const expiresAt = Math.min(now + LEAF_MS, this.#expiresAt);
    const names = [host, ...more].map((name) => der.element(0x82, Buffer.from(name)));
    const unsigned = der.sequence(
      VERSION_3,
      serialNumber(),
      ECDSA_WITH_SHA256,
      this.#issuer,
      der.sequence(der.time(now - SKEW_MS), der.time(expiresAt)),
      commonName(host.length <= LONGEST_COMMON_NAME ? host : 'sandbox'),
      this.#publicKey,
      der.element(
        0xa3,
        der.sequence(
          extension('551d11', false, der.sequence(...names)),
          NOT_AN_AUTHORITY,
          DIGITAL_SIGNATURE,
          SERVER,
          this.#authorityKeyId,
        ),
      ),
    );
    const signature = der.bits(sign('sha256', unsigned, this.#signingKey));
    return { certificate: pem(der.sequence(unsigned, ECDSA_WITH_SHA256, signature)), key: this.#key, expiresAt };
  }
}

function extension(id: string, isCritical: boolean, value: Buffer): Buffer {
  return der.sequence(der.objectId(id), ...(isCritical ? [der.boolean(true)] : []), der.octets(value));
}

function commonName(name: string): Buffer {
  return der.sequence(der.set(der.sequence(COMMON_NAME, der.text(name))));
}

/** Positive, as its first bit is zero. */
function serialNumber(): Buffer {
  const bytes = randomBytes(16);
  bytes[0] = (bytes[0]! & 0x7f) | 0x40;
  return der.integer(bytes);
}

/** The subject of a certificate of version 3: the sixth element inside of the first one. */
function subjectOf(certificate: Buffer): Buffer {
  let at = der.elementAt(certificate, der.elementAt(certificate, 0).content).content;
  for (let skipped = 0; skipped < 5; skipped += 1) at = der.elementAt(certificate, at).end;
  return certificate.subarray(at, der.elementAt(certificate, at).end);
}

/** PEM texts are joined, so each ends with a line break. */
function pem(bytes: Buffer): string {
  const lines = bytes.toString('base64').match(/.{1,64}/g)!;
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
}
