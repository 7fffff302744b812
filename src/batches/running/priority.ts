/**
 * Gives priority to interactive requests. While there are any, items begin so rarely that the event loop, which all
 * requests of a process share, is idle at least half of the time. Without interactive requests, items are not held
 * back.
 */
import type { Clock } from '../../base/clock.ts';

/** The other work of this process. */
interface Load {
  /** Interactive requests that run, and those begun so far. */
  readonly open: number;
  readonly begun: number;
  /** Milliseconds that the event loop has worked so far. */
  busyMs(): number;
}

/** Interactive requests are expected for so long after the last one. */
const PRESENT_MS = 2_000;
const WINDOW_MS = 100;
/** The share of the time that the event loop may be busy, all work together. */
const MOST_BUSY = 0.5;
/** Items a second: at first, and however busy the process is. */
const FIRST_RATE = 50;
const LEAST_RATE = 2;
const MOST_RATE = 2_000;
/** Items that begin at the same moment. */
const BURST_MS = 4;

export class Priority {
  readonly #clock: Clock;
  readonly #load: Load;
  #begunBefore = 0;
  /** Monotonic. */
  #presentUntil = Number.NEGATIVE_INFINITY;
  #windowAt = 0;
  #busyBefore = 0;
  #rate = FIRST_RATE;
  #allowance = 0;
  #countedAt = 0;

  constructor(clock: Clock, load: Load) {
    this.#clock = clock;
    this.#load = load;
  }

  /** Counts one item that begins now. Returns 0, or the milliseconds after which to ask again. */
  admit(): number {
    const now = this.#clock.monotonic();
    if (!this.#present(now)) return 0;
    this.#adapt(now);
    const most = Math.max(1, (this.#rate * BURST_MS) / 1000);
    this.#allowance = Math.min(most, this.#allowance + ((now - this.#countedAt) * this.#rate) / 1000);
    this.#countedAt = now;
    if (this.#allowance < 1) return Math.max(1, ((1 - this.#allowance) * 1000) / this.#rate);
    this.#allowance -= 1;
    return 0;
  }

  #present(now: number): boolean {
    const { open, begun } = this.#load;
    if (open > 0 || begun !== this.#begunBefore) {
      if (now >= this.#presentUntil) this.#restart(now);
      this.#presentUntil = now + PRESENT_MS;
    }
    this.#begunBefore = begun;
    return now < this.#presentUntil;
  }

  #restart(now: number): void {
    this.#rate = FIRST_RATE;
    this.#allowance = 0;
    this.#countedAt = now;
    this.#windowAt = now;
    this.#busyBefore = this.#load.busyMs();
  }

  #adapt(now: number): void {
    const passedMs = now - this.#windowAt;
    if (passedMs < WINDOW_MS) return;
    const busyMs = this.#load.busyMs();
    const isBusy = (busyMs - this.#busyBefore) / passedMs > MOST_BUSY;
    this.#rate = isBusy ? Math.max(LEAST_RATE, this.#rate / 2) : Math.min(MOST_RATE, this.#rate * 1.1 + 1);
    this.#windowAt = now;
    this.#busyBefore = busyMs;
  }
}
