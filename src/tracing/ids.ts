/** Random ids in hexadecimal digits. */
import { randomFillSync } from 'node:crypto';

const POOL_BYTES = 4_096;

/** Random bytes are drawn for many ids at once: one at a time costs ten times as much. */
export class Ids {
  readonly #pool = Buffer.alloc(POOL_BYTES);
  #at = POOL_BYTES;

  trace(): string {
    return this.#next(16);
  }

  /** The first 14 digits of the ids of all spans of a request; the last two number them. */
  family(): string {
    return this.#next(7);
  }

  #next(bytes: number): string {
    if (this.#at + bytes > POOL_BYTES) {
      randomFillSync(this.#pool);
      this.#at = 0;
    }
    const start = this.#at;
    this.#at += bytes;
    return this.#pool.toString('hex', start, this.#at);
  }
}
