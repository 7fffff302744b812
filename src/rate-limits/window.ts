/**
 * One process's view of one window of a rate limit. Pure arithmetic.
 *
 * `lease` is this process's part of the limit. What requests take from it (`taken`) stays taken, except reserved tokens
 * that were not used. The idle remainder covers new requests without a query.
 */
import { type RateLimit, type RateRefusal, type RateState, windowId, windowStart } from './limits.ts';

export class RateWindow {
  readonly id: string;
  /** Wall times in ms. */
  readonly start: number;
  readonly end: number;
  /** As the latest request carried it. */
  limit: RateLimit;
  lease = 0;
  taken = 0;
  /** Unleased amount in the database's last answer. */
  free: number;
  /** The limit was lowered: the lease must be requested again. */
  stale = false;
  /** Requests wait for this window, so later ones must queue. */
  blocked = false;
  /** Monotonic times in ms. */
  contestedUntil = 0;
  /** Until then no process has anything to return: refuse what does not fit into the remainder without asking. */
  emptyUntil = 0;
  retryAt = 0;
  /** When other processes were asked to return what they do not need; undefined if no recall is pending. */
  recalledAt: number | undefined;
  usedAt = 0;

  constructor(limit: RateLimit, timeMs: number) {
    this.id = windowId(limit, timeMs);
    this.start = windowStart(limit, timeMs);
    this.end = this.start + limit.periodMs;
    this.limit = limit;
    this.free = limit.amount;
  }

  get idle(): number {
    return this.lease - this.taken;
  }

  adopt(limit: RateLimit): void {
    const change = limit.amount - this.limit.amount;
    if (change === 0) return;
    this.limit = limit;
    this.free = Math.max(0, this.free + change);
    this.emptyUntil = 0;
    this.retryAt = 0;
    if (change < 0) this.stale = true;
  }

  covers(amount: number): boolean {
    return amount <= 0 || (!this.stale && this.idle >= amount);
  }

  /** True if `amount` is known to be unavailable now. */
  refuses(amount: number, monotonicMs: number): boolean {
    return amount > this.limit.amount || (this.emptyUntil > monotonicMs && amount > this.idle + this.free);
  }

  /** Removes the idle lease and returns its amount, to be given back to the database. */
  takeIdle(): number {
    const { idle } = this;
    if (idle <= 0) return 0;
    this.lease -= idle;
    return idle;
  }

  /** As far as this process knows. */
  get remaining(): number {
    return Math.max(this.idle + this.free, 0);
  }

  get state(): RateState {
    return { limit: this.limit, remaining: this.remaining, resetsAt: this.end };
  }

  refusal(needed: number): RateRefusal {
    return { refused: true, needed, ...this.state };
  }
}

/** The windows of one caller's requests, valid until one of them ends or one of the limits changes. */
export class RateWindows {
  readonly all: readonly RateWindow[];
  readonly requests: readonly RateWindow[];
  readonly tokens: readonly RateWindow[];
  readonly #limits: readonly RateLimit[];
  readonly #start: number;
  readonly #end: number;

  /** @param limits in the order of their windows */
  constructor(limits: readonly RateLimit[], all: readonly RateWindow[]) {
    this.#limits = limits;
    this.all = all;
    this.requests = all.filter(({ limit }) => limit.unit === 'requests');
    this.tokens = all.filter(({ limit }) => limit.unit === 'tokens');
    this.#start = Math.max(...all.map(({ start }) => start));
    this.#end = Math.min(...all.map(({ end }) => end));
  }

  serve(timeMs: number): boolean {
    if (timeMs < this.#start || timeMs >= this.#end) return false;
    for (let index = 0; index < this.all.length; index++) {
      if (this.all[index]!.limit.amount !== this.#limits[index]!.amount) return false;
    }
    return true;
  }
}
