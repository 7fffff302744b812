/**
 * Requests that the leases of this process do not cover. While any waits, the process asks the database for what is
 * missing, and where that has nothing left, asks the others to give back what they do not need. One is refused only when
 * all of them have answered, or had time to.
 */
import type { Clock } from '../base/clock.ts';
import { LeaseQueue } from '../base/lease-queue.ts';
import type { RateRefusal } from './limits.ts';
import type { RateAnswer, RateWish } from './store.ts';
import type { RateWindow } from './window.ts';

/** The database's side; may reject. */
export type AskRates = (wishes: readonly RateWish[]) => Promise<RateAnswer[]>;

/** Requests that wait at one time; more are told to come back. */
const MAX_WAITING = 10_000;
/** How long processes have to answer; who has not is taken to be gone, or to need what it has. */
export const PATIENCE_MS = 500;
const LOOK_AGAIN_MS = 50;
/** How long what the database has said of tokens holds: reserved ones may come back at any time. */
const TOKENS_EMPTY_MS = 250;
const SPARE_PARTS = 16;

interface Part {
  readonly window: RateWindow;
  /** Above 0. */
  readonly amount: number;
}

/** A window, and what is wanted of it in order. */
type Wanted = readonly [window: RateWindow, parts: readonly Part[]];

export class WaitingLine {
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

  /** Resolves with undefined once `take` was called, or with the refusal; without a promise where that is known already. */
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

  /** Something came back, here or elsewhere. */
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
      // What was given back with it is lost until the window ends, and so is what was granted: never too much is allowed.
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
      // Requests stay counted, so what is used up stays so, unless a process that ends gives back what it has.
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
      // Who lacks nothing of this window waits for another one.
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
