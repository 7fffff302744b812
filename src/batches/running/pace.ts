/**
 * Limits how many items of a batch run at once, so that batches use only the spare capacity of upstreams. The limit
 * grows by one after each success until the first refusal for load, and from then on after each round of successes.
 * Each refusal halves it.
 */

interface PaceLimits {
  first: number;
  most: number;
}

export class Pace {
  readonly #most: number;
  #limit: number;
  /** Successes since the limit changed. */
  #successes = 0;
  #refused = false;

  constructor({ first, most }: PaceLimits) {
    this.#limit = first;
    this.#most = most;
  }

  get limit(): number {
    return this.#limit;
  }

  succeeded(): void {
    this.#successes += 1;
    if ((this.#refused && this.#successes < this.#limit) || this.#limit === this.#most) return;
    this.#limit += 1;
    this.#successes = 0;
  }

  /** Items that ran side by side are often refused together: that is one refusal. */
  overloaded(alreadySlowed: boolean): void {
    if (!alreadySlowed) this.#limit = Math.max(1, Math.floor(this.#limit / 2));
    this.#successes = 0;
    this.#refused = true;
  }

  /** One at a time, because the items side by side reserve more than is left of a budget. */
  alone(): void {
    this.#limit = 1;
    this.#successes = 0;
    this.#refused = true;
  }
}

const FIRST_DELAY_MS = 1_000;
const LONGEST_DELAY_MS = 60_000;

/** When to try an item again that was refused for load. @param retryAfterSeconds what the refusal says */
export function retryDelayMs(attempts: number, retryAfterSeconds: number | undefined): number {
  const backoff = Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** Math.min(attempts - 1, 10));
  return Math.max(backoff, (retryAfterSeconds ?? 0) * 1000);
}
