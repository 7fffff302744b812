/**
 * Access tokens: JWTs of this gateway (RFC 9068) that act as a key for at most 15 minutes. This module only finds the
 * key of a token. Whether the key may be used is checked for each request, as for the key itself.
 */
import { hash } from 'node:crypto';
import { type AccessTokens, isHash } from '../../access/index.ts';
import type { Clock } from '../../base/clock.ts';
import { GatewayError } from '../../base/errors.ts';
import { uuidv7 } from '../../base/ids.ts';
import { unavailable } from '../../storage/unavailable.ts';
import { ALGORITHM, type Signer, type SigningKeyParts, SigningKeys } from './signing-keys.ts';

export const SCOPE = 'inference';
const TYPE = 'at+jwt';
/** Cached verification results; beyond this number the oldest is dropped. */
const MAX_VERIFIED = 10_000;
/** Verifications at one time; further ones get 503. */
const MAX_VERIFYING = 256;
const MAX_HEADER_LENGTH = 256;

interface NewAccessToken {
  /** `sub` of the subject token. */
  subject: string;
  policyId: string;
  keyHash: string;
  lifetimeMs: number;
  /** Wall time in ms: latest end of the token. */
  endsBy: number;
}

export interface IssuedToken {
  token: string;
  /** `jti` */
  id: string;
  /** Seconds. */
  expiresIn: number;
}

interface Verified {
  keyHash: string;
  /** Id of the signing key, which may be withdrawn. */
  keyId: string;
  /** Wall time in ms. */
  expiresAt: number;
}

export class OwnAccessTokens implements AccessTokens {
  readonly keys: SigningKeys;
  readonly #clock: Clock;
  /** By hash of the token; the token itself is not stored. */
  readonly #verified = new Map<string, Verified>();
  readonly #verifying = new Map<string, Promise<string | undefined>>();

  constructor(parts: SigningKeyParts) {
    this.#clock = parts.clock;
    this.keys = new SigningKeys(parts, () => this.#verified.clear());
  }

  /** Returns undefined if no lifetime would be left. @throws GatewayError 503 */
  async issue({ subject, policyId, keyHash, lifetimeMs, endsBy }: NewAccessToken): Promise<IssuedToken | undefined> {
    const { SignJWT } = await import('jose');
    const { key, issuer } = await this.keys.signer();
    const now = this.#clock.now();
    const issuedAt = Math.floor(now / 1000);
    const endsAt = Math.floor(Math.min(now + lifetimeMs, endsBy) / 1000);
    if (endsAt <= issuedAt) return undefined;
    const id = uuidv7(now);
    const token = await new SignJWT({ client_id: policyId, scope: SCOPE, key_hash: keyHash })
      .setProtectedHeader({ alg: ALGORITHM, typ: TYPE, kid: key.id })
      .setIssuer(issuer)
      .setAudience(issuer)
      .setSubject(subject)
      .setJti(id)
      .setIssuedAt(issuedAt)
      .setExpirationTime(endsAt)
      .sign(key.privateKey);
    return { token, id, expiresIn: endsAt - issuedAt };
  }

  keyHashOf(token: string): string | undefined | Promise<string | undefined> {
    const digest = hash('sha256', token, 'base64');
    const known = this.#verified.get(digest);
    if (known === undefined) return this.#verifyOnce(token, digest);
    const refreshing = this.keys.refresh();
    return refreshing
      ? refreshing.then(() => this.#knownHash(known, token, digest))
      : this.#knownHash(known, token, digest);
  }

  #knownHash(known: Verified, token: string, digest: string): string | undefined | Promise<string | undefined> {
    const ended = this.#clock.now() >= known.expiresAt;
    if (!ended && this.keys.has(known.keyId)) return known.keyHash;
    this.#verified.delete(digest);
    if (ended) throw expired();
    return this.#verifyOnce(token, digest);
  }

  #verifyOnce(token: string, digest: string): undefined | Promise<string | undefined> {
    const kid = keyIdOf(token);
    if (kid === undefined) return undefined;
    // Without change notifications, a verification in progress may use keys from before this request.
    const pending = this.keys.current ? this.#verifying.get(digest) : undefined;
    if (pending !== undefined) return pending;
    if (this.#verifying.size >= MAX_VERIFYING)
      throw unavailable('Too many access tokens are being checked. Try again.');
    const verifying = this.#verify(token, digest, kid).finally(() => {
      if (this.#verifying.get(digest) === verifying) this.#verifying.delete(digest);
    });
    this.#verifying.set(digest, verifying);
    return verifying;
  }

  async #verify(token: string, digest: string, kid: string): Promise<string | undefined> {
    const found = await this.keys.find(kid);
    if (found === undefined) return undefined;
    const verified = await this.#checked(token, found);
    // The signing key may have been withdrawn during the verification.
    if (!this.keys.has(kid)) throw invalid();
    if (this.#verified.size >= MAX_VERIFIED) this.#verified.delete(this.#verified.keys().next().value!);
    this.#verified.set(digest, verified);
    return verified.keyHash;
  }

  async #checked(token: string, { key, issuer }: Signer): Promise<Verified> {
    const { errors, jwtVerify } = await import('jose');
    try {
      const { payload } = await jwtVerify(token, key.publicKey, {
        ...{ algorithms: [ALGORITHM], typ: TYPE, issuer, audience: issuer, requiredClaims: ['exp'] },
        currentDate: new Date(this.#clock.now()),
      });
      const { exp, scope, key_hash: keyHash } = payload;
      if (exp === undefined || scope !== SCOPE || typeof keyHash !== 'string' || !isHash(keyHash)) throw invalid();
      return { keyHash, keyId: key.id, expiresAt: exp * 1000 };
    } catch (error) {
      if (error instanceof errors.JWTExpired) throw expired();
      throw error instanceof errors.JOSEError ? invalid(error) : error;
    }
  }
}

/** Key id of a token in our format; undefined for anything else, which may be a customer-chosen key. */
function keyIdOf(token: string): string | undefined {
  const end = token.indexOf('.');
  if (end === -1 || end > MAX_HEADER_LENGTH) return undefined;
  try {
    const header: unknown = JSON.parse(Buffer.from(token.slice(0, end), 'base64url').toString());
    const { alg, typ, kid } = (header ?? {}) as Record<string, unknown>;
    return alg === ALGORITHM && typ === TYPE && typeof kid === 'string' ? kid : undefined;
  } catch {
    return undefined;
  }
}

function expired(): GatewayError {
  return new GatewayError('authentication', 'The access token has expired.');
}

function invalid(cause?: unknown): GatewayError {
  return new GatewayError('authentication', 'The access token is not valid.', cause === undefined ? {} : { cause });
}
