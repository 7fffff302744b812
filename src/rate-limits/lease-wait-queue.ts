/**
 * Queue of requests that this process's leases do not cover. While any request waits, the process asks the database for
 * the missing amount. If nothing is left there, it asks the other processes to return what they do not need. A request
 * is refused only after all of them have answered, or their time to answer has passed.
 */
import type { Clock } from '../base/clock.ts';
import { LeaseQueue } from '../base/lease-queue.ts';
import type { RateRefusal } from './limits.ts';
import type { RateGrant, RateRequest } from './store.ts';
import type { RateWindow } from './window.ts';

/** Asks the database; may reject. */
type RequestRates = (requests: readonly RateRequest[]) => Promise<RateGrant[]>;

/** Requests that may wait at one time; further ones are refused with a retryable error. */
const MAX_WAITING = 10_000;
/** Time for processes to answer a recall. A silent process counts as dead, or as needing all it holds. */
export const RECALL_TIMEOUT_MS = 500;
const RETRY_MS = 50;
/** How long "no tokens left" is trusted: reserved tokens may be returned at any time. */
const TOKENS_EMPTY_MS = 250;
const SPARE_PARTS = 16;

interface Part {
  readonly window: RateWindow;
  /** Above 0. */
  readonly amount: number;
}

/** A window and the requested parts of it, in order. */
type Wanted = readonly [window: RateWindow, parts: readonly Part[]];

export class LeaseWaitQueue {
  readonly #request: RequestRates;
  readonly #clock: Clock;
  readonly #recallTimeoutMs: number;
  readonly #queue: LeaseQueue<Part, RateRefusal>;

  constructor(request: RequestRates, clock: Clock, recallTimeoutMs: number) {
    this.#request = request;
    this.#clock = clock;
    this.#recallTimeoutMs = recallTimeoutMs;
    this.#queue = new LeaseQueue(clock, {
      wanted: 'a rate limit',
      maxWaiting: MAX_WAITING,
      retryMs: RETRY_MS,
      covers: ({ window, amount }) => window.covers(amount),
      refusalOf: (parts) => refusalOf(parts, clock.monotonic()),
      turn: () => this.#turn(),
    });
  }

  /**
   * Resolves with undefined after `take` was called, or with the refusal. Returns a known refusal without a promise.
   */
  wait(
    windows: readonly RateWindow[],
    amount: number,
    take: () => void,
  ): RateRefusal | Promise<RateRefusal | undefined> {
    const parts = windows.map((window) => ({ window, amount }));
    const refusal = refusalOf(parts, this.#clock.monotonic());
    if (refusal !== undefined) return refusal;
    return this.#queue.wait(parts, () => {
      take();
      return undefined;
    });
  }

  /** Called when something was returned, in this process or another. */
  signal(): void {
    this.#queue.signal();
  }

  async #turn(): Promise<boolean> {
    const now = this.#clock.monotonic();
    const due = [...this.#queue.wanted].filter(([window]) => window.retryAt <= now);
    if (due.length > 0) await this.#requestFor(due);
    return due.length > 0;
  }

  async #requestFor(due: readonly Wanted[]): Promise<void> {
    const requests = due.map((wanted) => this.#rateRequest(wanted));
    let grants: RateGrant[];
    try {
      grants = await this.#request(requests);
    } catch (error) {
      // The failed return and any grant are lost until the window ends, so the limit is never exceeded.
      this.#queue.fail(error);
      return;
    }
    const now = this.#clock.monotonic();
    for (const [index, [window]] of due.entries()) this.#granted(window, grants[index]!, now);
  }

  #granted(window: RateWindow, grant: RateGrant, now: number): void {
    window.lease += grant.granted;
    window.free = grant.free;
    window.stale = false;
    if (grant.granted > 0) {
      window.recalledAt = undefined;
      window.retryAt = 0;
    } else if (grant.outstanding === 0) {
      window.recalledAt = undefined;
      window.retryAt = 0;
      // Requests stay counted, so a used-up window stays used up, unless a process that exits returns its lease.
      window.emptyUntil = window.limit.unit === 'requests' ? Number.POSITIVE_INFINITY : now + TOKENS_EMPTY_MS;
    } else {
      window.recalledAt ??= now;
      window.retryAt = now + RETRY_MS;
    }
  }

  #rateRequest([window, parts]: Wanted): RateRequest {
    const now = this.#clock.monotonic();
    const request: RateRequest = {
      id: window.id,
      endsAt: new Date(window.end),
      limit: window.limit.amount,
      back: window.stale ? window.takeIdle() : 0,
      need: 0,
      want: 0,
      spareParts: window.contestedUntil > now ? 0 : SPARE_PARTS,
      recall: window.recalledAt === undefined,
      presume: window.recalledAt !== undefined && now - window.recalledAt >= this.#recallTimeoutMs,
    };
    for (const { amount } of parts) {
      // A part that the lease covers waits for another window.
      if (request.need > 0) request.want += amount;
      else request.need = Math.max(0, amount - window.idle);
    }
    return request;
  }
}

function refusalOf(parts: readonly Part[], now: number): RateRefusal | undefined {
  const none = parts.find(({ window, amount }) => window.refuses(amount, now));
  return none?.window.refusal(none.amount);
}
