/**
 * How a provider's calls are signed when headers of its kind alone do not do: with a token that is fetched and runs out,
 * or over the body.
 */
import type { Clock } from '../base/clock.ts';
import type { UpstreamFailure } from '../formats/conversation/failure.ts';
import type { UpstreamRequest } from './send.ts';

/** Headers that go along beside those of the kind, and over them. */
export type Signature = Record<string, string>;

export interface UnsignedCall {
  /** As it will go out, with the headers of the kind. */
  request: UpstreamRequest;
  credential: string | null;
  clock: Clock;
}

export interface Signer {
  /**
   * Answers at once where it can (a token at hand, a hash of the body): a promise is only for what must be waited for.
   * Throws or rejects with `SignInError`; anything else is logged and told as a credential that was refused.
   */
  sign(call: UnsignedCall): Signature | Promise<Signature>;
  /** The upstream did not take what was signed with this credential: whatever is kept of it is fetched anew. */
  refused?(credential: string | null): void;
}

/** No signature could be had. The failure decides, as an upstream's own would, what follows. */
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
  /** `clock.now()` when it runs out. */
  expiresAt: number;
}

/** A token is renewed this long before it runs out: a call that begins with it should end with it. */
const RENEW_AHEAD_MS = 5 * 60_000;
/** Between two renewals of a token that still holds, whether they fail or bring one that ends as early. */
const RETRY_MS = 10_000;
/** A fetch that takes longer has been forgotten by its service: the next call begins another. */
const PATIENCE_MS = 30_000;

/**
 * Keeps one token. Many may wait for it, one fetches it; near its end it is renewed while calls go on with the old one;
 * a failure is told to those who wait and to nobody after them.
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
      // Nobody waits for it: calls go on with the old one, whatever becomes of it.
      this.#renew(clock).catch(() => {});
    }
    return token.value;
  }

  /** The upstream has refused it: the next call fetches another one. */
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
