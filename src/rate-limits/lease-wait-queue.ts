/**
 * Queue of requests that this process's leases do not cover. While any request waits, the process asks the database for
 * the missing amount. If nothing is left there, it asks the other processes to return what they do not need. A request
 * is refused only after all of them have answered, or their time to answer has passed.
 */
import type { Clock } from '../base/clock.ts';
import { LeaseQueue } from '../base/lease-queue.ts';
import type { RateRefusal } from './limits.ts';
import type { RateAnswer, RateWish } from './store.ts';
import type { RateWindow } from './window.ts';

/** Asks the database; may reject. */
export type AskRates = (wishes: readonly RateWish[]) => Promise<RateAnswer[]>;

/** Requests that may wait at one time; further ones are refused with a retryable error. */
const MAX_WAITING = 10_000;
/** Time for processes to answer a recall. A silent process counts as dead, or as needing all it holds. */
export const PATIENCE_MS = 500;
const LOOK_AGAIN_MS = 50;
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
  readonly #ask: AskRates;
  readonly #clock: Clock;
  readonly #patienceMs: number;
  readonly #queue: LeaseQueue<Part, RateRefusal>;

  constructor(ask: AskRates, clock: Clock, patienceMs: number) {
    this.#ask = ask;
    this.#clock = clock;
    this.#patienceMs = patienceMs;
    this.#queue = new LeaseQueue(clock, {
      wanted: 'a rate limit',
      maxWaiting: MAX_WAITING,
      restMs: LOOK_AGAIN_MS,
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
    const due = [...this.#queue.wanted].filter(([window]) => window.askAt <= now);
    if (due.length > 0) await this.#askFor(due);
    return due.length > 0;
  }

  async #askFor(due: readonly Wanted[]): Promise<void> {
    const wishes = due.map((wanted) => this.#wish(wanted));
    let answers: RateAnswer[];
    try {
      answers = await this.#ask(wishes);
    } catch (error) {
      // The failed return and any grant are lost until the window ends, so the limit is never exceeded.
      this.#queue.fail(error);
      return;
    }
    const now = this.#clock.monotonic();
    for (const [index, [window]] of due.entries()) this.#answered(window, answers[index]!, now);
  }

  #answered(window: RateWindow, answer: RateAnswer, now: number): void {
    window.lease += answer.granted;
    window.free = answer.free;
    window.stale = false;
    if (answer.granted > 0) {
      window.recalledAt = undefined;
      window.askAt = 0;
    } else if (answer.outstanding === 0) {
      window.recalledAt = undefined;
      window.askAt = 0;
      // Requests stay counted, so a used-up window stays used up, unless a process that exits returns its lease.
      window.emptyUntil = window.limit.unit === 'requests' ? Number.POSITIVE_INFINITY : now + TOKENS_EMPTY_MS;
    } else {
      window.recalledAt ??= now;
      window.askAt = now + LOOK_AGAIN_MS;
    }
  }

  #wish([window, parts]: Wanted): RateWish {
    const now = this.#clock.monotonic();
    const wish: RateWish = {
      id: window.id,
      endsAt: new Date(window.end),
      limit: window.limit.amount,
      back: window.stale ? window.takeIdle() : 0,
      need: 0,
      want: 0,
      spareParts: window.contestedUntil > now ? 0 : SPARE_PARTS,
      recall: window.recalledAt === undefined,
      presume: window.recalledAt !== undefined && now - window.recalledAt >= this.#patienceMs,
    };
    for (const { amount } of parts) {
      // A part that the lease covers waits for another window.
      if (wish.need > 0) wish.want += amount;
      else wish.need = Math.max(0, amount - window.idle);
    }
    return wish;
  }
}

function refusalOf(parts: readonly Part[], now: number): RateRefusal | undefined {
  const none = parts.find(({ window, amount }) => window.refuses(amount, now));
  return none?.window.refusal(none.amount);
}
