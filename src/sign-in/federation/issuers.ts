/**
 * The public keys of identity providers. They are fetched through the checked egress, from the configured URL or the
 * one in the issuer's discovery document. They are cached for a while and fetched again when a token names an unknown
 * key. However many tokens arrive, each issuer gets one request at a time, and rarely. While an issuer is unreachable
 * its keys stay valid for a bounded time.
 */
import type { CryptoKey, createLocalJWKSet, JWTHeaderParameters } from 'jose';
import type { Clock } from '../../base/clock.ts';
import { type FederationPolicy, type IssuerKey, isIssuerAddress, readIssuerKey } from '../../base/config.ts';
import type { Log } from '../../base/log.ts';
import { type Egress, EgressError } from '../../egress/index.ts';
import { notNow, refusal } from './oauth-error.ts';

interface IssuerParts {
  egress: Pick<Egress, 'request'>;
  clock: Clock;
  log: Log;
}

/** Keys older than this are fetched again: a withdrawn key is accepted for at most this long, */
export const FRESH_MS = 600_000;
/** or this long while the issuer is unreachable. */
export const STALE_MS = 3_600_000;
/** Minimum interval between two requests, after a success and after a failure. */
export const AGAIN_MS = 30_000;
export const RETRY_MS = 5_000;
const TIMEOUT_MS = 5_000;
const MAX_BYTES = 256 * 1024;
const MOST_KEYS = 100;
/** Maximum number of issuers with cached keys, over all configuration reloads. */
const MOST_ISSUERS = 1_000;

type Select = ReturnType<typeof createLocalJWKSet>;

export class Issuers {
  readonly #parts: IssuerParts;
  readonly #fetched = new Map<string, FetchedKeys>();
  readonly #given = new WeakMap<readonly IssuerKey[], Promise<Select>>();

  constructor(parts: IssuerParts) {
    this.#parts = parts;
  }

  /**
   * The key that signed a token with this header.
   *
   * @throws GatewayError 400 `invalid_grant` if there is none, 503 if the issuer is unreachable
   */
  async keyFor({ issuer, keys }: FederationPolicy, header: JWTHeaderParameters): Promise<CryptoKey> {
    if (keys === null || typeof keys === 'string') return this.#fetchedKeys(issuer, keys).keyFor(header);
    let select = this.#given.get(keys);
    if (select === undefined) {
      select = selectFrom(keys);
      this.#given.set(keys, select);
    }
    return (await selected(await select, header)) ?? unknownKey();
  }

  #fetchedKeys(issuer: string, address: string | null): FetchedKeys {
    const name = JSON.stringify([issuer, address]);
    let found = this.#fetched.get(name);
    if (found === undefined) {
      found = new FetchedKeys(issuer, address, this.#parts);
      if (this.#fetched.size >= MOST_ISSUERS) this.#fetched.delete(this.#fetched.keys().next().value!);
      this.#fetched.set(name, found);
    }
    return found;
  }
}

class FetchedKeys {
  readonly #issuer: string;
  readonly #address: string | null;
  readonly #parts: IssuerParts;
  #cached: { select: Select; fetchedAt: number } | undefined;
  #requestedAt = Number.NEGATIVE_INFINITY;
  /** Error of the last request. */
  #failure: unknown;
  #fetching: Promise<void> | undefined;

  constructor(issuer: string, address: string | null, parts: IssuerParts) {
    this.#issuer = issuer;
    this.#address = address;
    this.#parts = parts;
  }

  async keyFor(header: JWTHeaderParameters): Promise<CryptoKey> {
    if (this.#ageMs >= FRESH_MS) {
      const fetching = this.#request();
      // Do not wait for an issuer that failed last time while its cached keys are valid.
      if (this.#failure === undefined || this.#ageMs >= STALE_MS) await fetching;
    }
    if (this.#cached === undefined || this.#ageMs >= STALE_MS) throw this.#unavailable();
    const key = await selected(this.#cached.select, header);
    if (key !== undefined) return key;
    await this.#request();
    const second = await selected(this.#cached.select, header);
    if (second !== undefined) return second;
    // The issuer's current keys are unknown.
    if (this.#failure !== undefined) throw this.#unavailable();
    return unknownKey();
  }

  get #ageMs(): number {
    return this.#parts.clock.monotonic() - (this.#cached?.fetchedAt ?? Number.NEGATIVE_INFINITY);
  }

  #unavailable() {
    return notNow('The keys of the issuer cannot be fetched at the moment. Retry later.', this.#failure);
  }

  /** Resolves when the request has finished or failed; at once if the last one was a moment ago. */
  #request(): Promise<void> {
    const pauseMs = this.#failure === undefined ? AGAIN_MS : RETRY_MS;
    if (this.#fetching === undefined && this.#parts.clock.monotonic() - this.#requestedAt >= pauseMs) {
      this.#requestedAt = this.#parts.clock.monotonic();
      this.#fetching = this.#refresh().finally(() => {
        this.#fetching = undefined;
      });
    }
    return this.#fetching ?? Promise.resolve();
  }

  async #refresh(): Promise<void> {
    const fetchedAt = this.#parts.clock.monotonic();
    try {
      const address = this.#address ?? (await this.#addressOfKeys());
      this.#cached = { select: await selectFrom(usableKeys(await this.#document(address))), fetchedAt };
      this.#failure = undefined;
    } catch (error) {
      this.#failure = error;
      const reason = error instanceof Error ? error.message : String(error);
      this.#parts.log.warn('the keys of an issuer cannot be fetched', { issuer: this.#issuer, reason });
    }
  }

  /** OpenID Connect Discovery 1.0, 4. */
  async #addressOfKeys(): Promise<string> {
    const { issuer, jwks_uri: address } = await this.#document(
      `${this.#issuer.replace(/\/$/, '')}/.well-known/openid-configuration`,
    );
    if (issuer !== this.#issuer) throw new Error('its document has a different issuer');
    const usable = typeof address === 'string' && isIssuerAddress(address);
    // An issuer on https must not redirect to plain http, such as on this machine.
    if (!usable || (this.#issuer.startsWith('https:') && !address.startsWith('https:'))) {
      throw new Error('its document has no usable jwks_uri');
    }
    return address;
  }

  async #document(url: string): Promise<Record<string, unknown>> {
    const headers = { accept: 'application/json' };
    const request = { url, headers, maxBytes: MAX_BYTES, timeoutMs: TIMEOUT_MS };
    const { status, body } = await this.#parts.egress.request(request).catch((error: unknown) => {
      throw error instanceof EgressError ? new Error(`${url} ${error.message}`) : error;
    });
    if (status !== 200) throw new Error(`${url} returned status ${status}`);
    let value: unknown;
    try {
      value = JSON.parse(body.toString('utf8'));
    } catch {
      throw new Error(`${url} did not return JSON`);
    }
    if (typeof value !== 'object' || value === null) throw new Error(`${url} did not return a JSON object`);
    return value as Record<string, unknown>;
  }
}

/** The keys usable for signatures; issuers may publish others too. */
function usableKeys({ keys }: Record<string, unknown>): IssuerKey[] {
  if (!Array.isArray(keys)) throw new Error('its keys are not a JWK Set');
  const usable = keys
    .map(readIssuerKey)
    .filter((key) => typeof key !== 'string')
    .slice(0, MOST_KEYS);
  if (usable.length === 0) throw new Error('none of its keys is usable');
  return usable;
}

async function selectFrom(keys: readonly IssuerKey[]): Promise<Select> {
  const { createLocalJWKSet } = await import('jose');
  return createLocalJWKSet({
    keys: keys.map((key) => ({ ...key })) as Parameters<typeof createLocalJWKSet>[0]['keys'],
  });
}

/** undefined if no key has the kid and allows the algorithm. */
async function selected(select: Select, header: JWTHeaderParameters): Promise<CryptoKey | undefined> {
  try {
    return await select(header);
  } catch (error) {
    const { errors } = await import('jose');
    if (error instanceof errors.JWKSNoMatchingKey) return undefined;
    if (error instanceof errors.JWKSMultipleMatchingKeys) {
      const named = header.kid === undefined ? 'names no kid' : 'names a kid that several keys have';
      throw refusal('invalid_grant', `subject_token ${named}, and several keys of the issuer could have signed it`);
    }
    throw refusal('invalid_grant', 'subject_token is signed with an issuer key that is not usable', error);
  }
}

function unknownKey(): never {
  throw refusal('invalid_grant', 'subject_token is signed with a key that the issuer does not publish');
}
