/** Runs work that is heavy for the database one at a time, with a bounded queue. */
import { GatewayError } from './errors.ts';

const MAX_WAITING = 16;

export class SerialQueue {
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  /** Rejects with GatewayError 503 (retryable) when the queue is full. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#waiting >= MAX_WAITING) {
      throw new GatewayError('provider_overloaded', 'too many such questions are being answered', {
        retryAfterSeconds: 5,
        metadata: { retryable: true },
      });
    }
    this.#waiting += 1;
    try {
      const result = this.#last.then(work);
      this.#last = result.catch(() => {});
      return await result;
    } finally {
      this.#waiting -= 1;
    }
  }
}
