/**
 * The public keys of identity providers. They are asked for at the issuer's address, or at the one that its own document names,
 * through the checked egress; kept for a while; and asked for again when a token names a key that is not among them. However many
 * tokens come, and whatever is in them, an issuer is asked one question at a time and rarely. While it cannot be reached, its
 * keys hold on for a bounded time.
 */
import type { CryptoKey, createLocalJWKSet, JWTHeaderParameters } from 'jose';
import type { Clock } from '../../base/clock.ts';
import { type FederationPolicy, type IssuerKey, isIssuerAddress, readIssuerKey } from '../../base/config.ts';
import type { Log } from '../../base/log.ts';
import { type Egress, EgressError } from '../../egress/index.ts';
import { notNow, refusal } from './oauth-error.ts';

export interface IssuerParts {
  egress: Pick<Egress, 'request'>;
  clock: Clock;
  log: Log;
}

/** Keys of this age are asked for again: for so long may a key that the issuer has withdrawn still count. */
export const FRESH_MS = 600_000;
/** While the issuer is away: for so long do they count all the same. */
export const STALE_MS = 3_600_000;
/** Between two questions, after one that was answered and one that was not. */
export const AGAIN_MS = 30_000;
export const RETRY_MS = 5_000;
const TIMEOUT_MS = 5_000;
const MAX_BYTES = 256 * 1024;
const MOST_KEYS = 100;
/** Issuers whose keys are kept, over any number of reloads. */
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
   * The key that a token with this header was signed with.
   *
   * @throws GatewayError 400 `invalid_grant` when there is none, 503 when the issuer cannot be asked
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
  #held: { select: Select; fetchedAt: number } | undefined;
  #askedAt = Number.NEGATIVE_INFINITY;
  /** Why the last question was not answered. */
  #failure: unknown;
  #asking: Promise<void> | undefined;

  constructor(issuer: string, address: string | null, parts: IssuerParts) {
    this.#issuer = issuer;
    this.#address = address;
    this.#parts = parts;
  }

  async keyFor(header: JWTHeaderParameters): Promise<CryptoKey> {
    if (this.#ageMs >= FRESH_MS) {
      const asking = this.#ask();
      // For an issuer that did not answer the last time nobody waits while its keys hold.
      if (this.#failure === undefined || this.#ageMs >= STALE_MS) await asking;
    }
    if (this.#held === undefined || this.#ageMs >= STALE_MS) throw this.#cannotTell();
    const key = await selected(this.#held.select, header);
    if (key !== undefined) return key;
    await this.#ask();
    const second = await selected(this.#held.select, header);
    if (second !== undefined) return second;
    // What the issuer would say to it now is not known.
    if (this.#failure !== undefined) throw this.#cannotTell();
    return unknownKey();
  }

  get #ageMs(): number {
    return this.#parts.clock.monotonic() - (this.#held?.fetchedAt ?? Number.NEGATIVE_INFINITY);
  }

  #cannotTell() {
    return notNow('The keys of the issuer cannot be fetched at the moment. Try again.', this.#failure);
  }

  /** Resolves when the question is answered or has failed; at once when the last one was a moment ago. */
  #ask(): Promise<void> {
    const pauseMs = this.#failure === undefined ? AGAIN_MS : RETRY_MS;
    if (this.#asking === undefined && this.#parts.clock.monotonic() - this.#askedAt >= pauseMs) {
      this.#askedAt = this.#parts.clock.monotonic();
      this.#asking = this.#refresh().finally(() => {
        this.#asking = undefined;
      });
    }
    return this.#asking ?? Promise.resolve();
  }

  async #refresh(): Promise<void> {
    const fetchedAt = this.#parts.clock.monotonic();
    try {
      const address = this.#address ?? (await this.#addressOfKeys());
      this.#held = { select: await selectFrom(usableKeys(await this.#document(address))), fetchedAt };
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
    if (issuer !== this.#issuer) throw new Error('its document names another issuer');
    const usable = typeof address === 'string' && isIssuerAddress(address);
    // Who is asked over TLS must not lead to this machine.
    if (!usable || (this.#issuer.startsWith('https:') && !address.startsWith('https:'))) {
      throw new Error('its document names no usable jwks_uri');
    }
    return address;
  }

  async #document(url: string): Promise<Record<string, unknown>> {
    const headers = { accept: 'application/json' };
    const request = { url, headers, maxBytes: MAX_BYTES, timeoutMs: TIMEOUT_MS };
    const { status, body } = await this.#parts.egress.request(request).catch((error: unknown) => {
      throw error instanceof EgressError ? new Error(`${url} ${error.message}`) : error;
    });
    if (status !== 200) throw new Error(`${url} answers with ${status}`);
    let value: unknown;
    try {
      value = JSON.parse(body.toString('utf8'));
    } catch {
      throw new Error(`${url} does not answer with JSON`);
    }
    if (typeof value !== 'object' || value === null) throw new Error(`${url} does not answer with an object`);
    return value as Record<string, unknown>;
  }
}

/** Those that signatures may be checked with; issuers publish others beside them. */
function usableKeys({ keys }: Record<string, unknown>): IssuerKey[] {
  if (!Array.isArray(keys)) throw new Error('its keys are no JWK Set');
  const usable = keys
    .map(readIssuerKey)
    .filter((key) => typeof key !== 'string')
    .slice(0, MOST_KEYS);
  if (usable.length === 0) throw new Error('none of its keys is of use');
  return usable;
}

async function selectFrom(keys: readonly IssuerKey[]): Promise<Select> {
  const { createLocalJWKSet } = await import('jose');
  return createLocalJWKSet({
    keys: keys.map((key) => ({ ...key })) as Parameters<typeof createLocalJWKSet>[0]['keys'],
  });
}

/** undefined: none has the kid and states the algorithm. */
async function selected(select: Select, header: JWTHeaderParameters): Promise<CryptoKey | undefined> {
  try {
    return await select(header);
  } catch (error) {
    const { errors } = await import('jose');
    if (error instanceof errors.JWKSNoMatchingKey) return undefined;
    if (error instanceof errors.JWKSMultipleMatchingKeys) {
      const named = header.kid === undefined ? 'names no kid' : 'names a kid that is not of one key alone';
      throw refusal('invalid_grant', `subject_token ${named}, and several keys of the issuer could have signed it`);
    }
    throw refusal('invalid_grant', 'subject_token is signed with a key of the issuer that is of no use', error);
  }
}

function unknownKey(): never {
  throw refusal('invalid_grant', 'subject_token is signed with a key that is not among those of the issuer');
}
