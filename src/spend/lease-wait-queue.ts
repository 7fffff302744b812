/**
 * Queue of reservations that the leases do not cover. While any waits, the process requests the missing amount from the
 * database, recalls idle leases of other processes, and retries whenever something is returned.
 */
import type { Clock } from '../base/clock.ts';
import { LeaseQueue, type WaitingRequest } from '../base/lease-queue.ts';
import type { Refusal } from './budget.ts';
import type { LeaseAnswer, LeaseRequest } from './store.ts';
import { type BudgetWindow, type Part, refusalOfExcess } from './window.ts';

/** Asks the database. Every call may reject. */
export interface LeaseStore {
  ask(requests: readonly LeaseRequest[]): Promise<LeaseAnswer[]>;
  /** Asks all other processes to return what they do not need of these windows. */
  recall(windowIds: readonly string[]): Promise<void>;
  /** Announces to other processes that something was returned. */
  announceReturn(windowIds: readonly string[]): Promise<void>;
}

export interface LeaseLimits {
  /**
   * A waiting reservation is refused if nothing is settled or returned for this long, and the database, asked after that,
   * has no room for it. A slow database alone refuses nothing.
   */
  patienceMs: number;
  /** The same, whatever is settled or returned. */
  waitMs: number;
  maxWaiting: number;
}

export const LEASE_LIMITS: LeaseLimits = { patienceMs: 2_000, waitMs: 30_000, maxWaiting: 10_000 };

const ASK_AGAIN_MS = 100;
const RECALL_AGAIN_MS = 400;
const EXHAUSTED_MS = 5_000;
const EXHAUSTED_PATIENCE_MS = 250;

/** A window and the requested parts of it, in order. */
type Wanted = readonly [window: BudgetWindow, parts: readonly Part[]];

export class LeaseWaitQueue {
  readonly #store: LeaseStore;
  readonly #clock: Clock;
  readonly #limits: LeaseLimits;
  readonly #onUncertain: () => void;
  readonly #queue: LeaseQueue<Part, Refusal>;

  constructor(store: LeaseStore, clock: Clock, limits: LeaseLimits, onUncertain: () => void) {
    this.#store = store;
    this.#clock = clock;
    this.#limits = limits;
    this.#onUncertain = onUncertain;
    this.#queue = new LeaseQueue(clock, {
      wanted: 'a budget',
      maxWaiting: limits.maxWaiting,
      retryMs: ASK_AGAIN_MS,
      covers: ({ window, nano }) => window.covers(nano),
      refusalOf: refusalOfExcess,
      turn: () => this.#turn(),
    });
  }

  /**
   * Resolves with the result of `take` once all of `parts` fit, or with the refusal. Rejects with GatewayError 429 if
   * too many wait. Requests that already hold something go first: the sooner they end, the sooner they return it.
   */
  wait<T>(parts: readonly Part[], take: () => T, position: 'first' | 'last'): Promise<T | Refusal> {
    // Keep windows with waiting requests.
    for (const { window } of parts) window.holders += 1;
    const needed = parts.filter(({ nano }) => nano > 0n);
    return this.#queue.wait(needed, take, position).finally(() => {
      for (const { window } of parts) window.holders -= 1;
    });
  }

  /** Called when something was returned in this process. */
  signal(): void {
    this.#queue.signal();
  }

  serve(): void {
    this.#queue.serve();
  }

  async #turn(): Promise<boolean> {
    const now = this.#clock.monotonic();
    const due = [...this.#queue.wanted].filter(([window]) => window.stale || window.askAgainAt <= now);
    if (due.length > 0) await this.#askAndRecall(due);
    const then = this.#clock.monotonic();
    this.#queue.refuseWaiting((waiter) => this.#refusalOf(waiter, then));
    return this.#queue.wanted.keys().some((window) => window.askAgainAt === 0);
  }

  async #askAndRecall(due: readonly Wanted[]): Promise<void> {
    try {
      await this.#ask(due);
      this.#queue.serve();
      const now = this.#clock.monotonic();
      const waitedFor = [...this.#queue.wanted.keys()];
      const recall = waitedFor.filter((window) => window.othersLeased > 0n && window.recallAgainAt <= now);
      if (recall.length === 0) return;
      for (const window of recall) window.recallAgainAt = now + RECALL_AGAIN_MS;
      await this.#store.recall(recall.map((window) => window.id));
    } catch (error) {
      this.#queue.fail(error);
    }
  }

  async #ask(due: readonly Wanted[]): Promise<void> {
    const requests = due.map((wanted) => this.#requestFor(wanted));
    const askedAt = this.#clock.monotonic();
    let answers: LeaseAnswer[];
    try {
      answers = await this.#store.ask(requests);
    } catch (error) {
      this.#onUncertain();
      throw error;
    } finally {
      for (const [index, [window]] of due.entries()) window.leaving -= requests[index]!.backNano;
    }
    const now = this.#clock.monotonic();
    for (const [index, [window]] of due.entries()) {
      const answer = answers[index]!;
      window.granted(answer.grantedNano, now);
      window.askedAt = askedAt;
      window.used = answer.usedNano;
      window.othersLeased = answer.leasedNano - (window.lease - window.forced);
      window.known = requests[index]!.includeByok === window.budget.includeByok;
      // Leases granted under a higher limit stay until they are returned. While the sum is over the limit, idle leases
      // must not be spent. The limit may also have been lowered again in the meantime.
      window.stale = !window.known || answer.usedNano + answer.leasedNano > window.budget.limitNano;
      window.askAgainAt = answer.grantedNano > 0n ? 0 : now + ASK_AGAIN_MS;
    }
  }

  #requestFor([window, parts]: Wanted): LeaseRequest {
    const request: LeaseRequest = {
      windowId: window.id,
      limitNano: window.budget.limitNano,
      includeByok: window.budget.includeByok,
      backNano: 0n,
      needNano: 0n,
      wantNano: 0n,
      spareNano: 0n,
      spentBy: window.budget.spentBy,
    };
    if (window.stale) request.backNano = window.takeIdle();
    for (const { nano } of parts) {
      // A part that the lease covers waits for another window.
      if (request.needNano > 0n) request.wantNano += nano;
      else if (nano > window.idle) request.needNano = nano - window.idle;
    }
    const now = this.#clock.monotonic();
    if (window.contestedUntil <= now) request.spareNano = window.spareNano(now, request.needNano);
    return request;
  }

  #refusalOf({ parts, since }: WaitingRequest<Part>, now: number): Refusal | undefined {
    const part = parts.find(({ window }) => window.blocked && window.askedAt >= this.#deadline(window, since, now));
    if (part === undefined) return undefined;
    part.window.exhaustedUntil = now + EXHAUSTED_MS;
    return part.window.refusal(part.nano);
  }

  #deadline(window: BudgetWindow, since: number, now: number): number {
    const patienceMs = window.exhaustedUntil > now ? EXHAUSTED_PATIENCE_MS : this.#limits.patienceMs;
    return Math.min(since + this.#limits.waitMs, Math.max(since, window.progressAt) + patienceMs);
  }
}
