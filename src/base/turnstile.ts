/** Limits how many tasks run at once. Others wait in order, so that a short burst does not fail. */
import { GatewayError } from './errors.ts';

export class Turnstile {
  readonly #waiting: (() => void)[] = [];
  readonly #mostWaiting: number;
  #free: number;

  constructor(most: number, mostWaiting: number) {
    this.#free = most;
    this.#mostWaiting = mostWaiting;
  }

  /** `work` must not pass the same turnstile. Rejects with GatewayError 503 (retryable) if too many wait. */
  async pass<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else await this.#turn();
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free += 1;
      else next();
    }
  }

  #turn(): Promise<void> {
    if (this.#waiting.length >= this.#mostWaiting) {
      const details = { status: 503, retryAfterSeconds: 1, metadata: { retryable: true } };
      throw new GatewayError('server', 'Too many requests of this kind are waiting.', details);
    }
    return new Promise((resolve) => void this.#waiting.push(resolve));
  }
}
