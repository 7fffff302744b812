/**
 * Signs a provider's calls if static headers are not enough: with a token that is fetched and expires, or over the
 * body.
 */
import type { Clock } from '../../base/clock.ts';
import type { UpstreamFailure } from '../../formats/conversation/failure.ts';
import type { Delivery } from '../provider.ts';
import type { UpstreamRequest } from '../send/transport.ts';

/** Headers added to those of the kind; they take precedence. */
export type Signature = Record<string, string>;

export interface UnsignedCall {
  /** The request as it will be sent, with the kind's headers. */
  request: UpstreamRequest;
  credential: string | null;
  operation?: Delivery['operation'];
  clock: Clock;
}

export interface Signer {
  /**
   * Returns synchronously if possible (cached token, body hash); a promise only if it must wait. Throws or rejects with
   * `SignInError`; any other error is logged and reported as a refused credential.
   */
  sign(call: UnsignedCall): Signature | Promise<Signature>;
  /** The upstream refused this credential's signature: cached tokens are dropped. */
  refused?(credential: string | null): void;
}

/** No signature is available. Its failure is handled like an upstream's own. */
export class SignInError extends Error {
  readonly failure: UpstreamFailure;

  constructor(failure: UpstreamFailure) {
    super(failure.message);
    this.name = 'SignInError';
    this.failure = failure;
  }
}

export interface Token<Value = string> {
  value: Value;
  /** Expiry as `clock.now()`. */
  expiresAt: number;
}

/** Tokens are renewed this early, so that a call that starts with one also ends with it. */
const RENEW_AHEAD_MS = 5 * 60_000;
/** Minimum time between renewals of a valid token, whether they fail or return one that expires as early. */
const RETRY_MS = 10_000;
/** After this time a fetch counts as lost, and the next call starts another. */
const PATIENCE_MS = 30_000;

/**
 * Caches one token. Concurrent calls share one fetch. Near expiry the token is renewed in the background while calls
 * use the old one. A failure reaches only the calls that were waiting.
 */
export class TokenKeeper<Value = string> {
  readonly #obtain: (clock: Clock) => Promise<Token<Value>>;
  #token: Token<Value> | undefined;
  #fetching: Promise<Value> | undefined;
  #fetchedAt = 0;
  #notBefore = 0;

  constructor(obtain: (clock: Clock) => Promise<Token<Value>>) {
    this.#obtain = obtain;
  }

  token(clock: Clock): Value | Promise<Value> {
    const now = clock.now();
    const token = this.#token;
    if (token === undefined || now >= token.expiresAt) return this.#renew(clock);
    if (now >= token.expiresAt - RENEW_AHEAD_MS && now >= this.#notBefore) {
      this.#notBefore = now + RETRY_MS;
      // Not awaited: calls use the old token, even if the renewal fails.
      this.#renew(clock).catch(() => {});
    }
    return token.value;
  }

  /** The upstream refused it: the next call fetches a new one. */
  forget(): void {
    this.#token = undefined;
  }

  #renew(clock: Clock): Promise<Value> {
    const now = clock.monotonic();
    if (this.#fetching !== undefined && now - this.#fetchedAt < PATIENCE_MS) return this.#fetching;
    this.#fetchedAt = now;
    const fetching = this.#obtain(clock)
      .then((token) => {
        if (this.#fetching === fetching) this.#token = token;
        return token.value;
      })
      .finally(() => {
        if (this.#fetching === fetching) this.#fetching = undefined;
      });
    this.#fetching = fetching;
    return fetching;
  }
}
