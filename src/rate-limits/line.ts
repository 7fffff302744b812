/**
 * Requests that the leases of this process do not cover, in the order in which they came. While any waits, the process
 * asks the database for what is missing, and where that has nothing left, asks the others to give back what they do not
 * need. One is refused only when all of them have answered, or had time to.
 *
 * Nothing is held while waiting: a request takes all of its windows in one step or none, so no two can wait for each other.
 */
import { type Clock, Pause } from '../base/clock.ts';
import { GatewayError } from '../base/errors.ts';
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

interface Waiter {
  readonly windows: readonly RateWindow[];
  /** Of each of them; above 0. */
  readonly amount: number;
  take(): void;
  refuse(refusal: RateRefusal): void;
  fail(error: unknown): void;
}

export class Line {
  readonly #ask: AskRates;
  readonly #clock: Clock;
  readonly #patienceMs: number;
  readonly #pause: Pause;
  #waiters: Waiter[] = [];
  #pumping = false;
  #signalled = false;

  constructor(ask: AskRates, clock: Clock, patienceMs: number) {
    this.#ask = ask;
    this.#clock = clock;
    this.#patienceMs = patienceMs;
    this.#pause = new Pause(clock);
  }

  /** Resolves with undefined once `take` was called, or with the refusal. */
  wait(windows: readonly RateWindow[], amount: number, take: () => void): Promise<RateRefusal | undefined> {
    if (this.#waiters.length >= MAX_WAITING) return Promise.reject(tooManyWaiting());
    return new Promise((resolve, reject) => {
      this.#waiters.push({
        windows,
        amount,
        take() {
          take();
          resolve(undefined);
        },
        refuse: resolve,
        fail: reject,
      });
      for (const window of windows) if (!window.covers(amount)) window.blocked = true;
      if (this.#pumping) this.signal();
      else void this.#pump();
    });
  }

  /** Something came back, here or elsewhere. */
  signal(): void {
    this.#signalled = true;
    this.#pause.end();
  }

  async #pump(): Promise<void> {
    this.#pumping = true;
    // Those that arrive in the same turn are asked for together.
    await Promise.resolve();
    while (this.#waiters.length > 0) {
      this.#signalled = false;
      this.#serve();
      const now = this.#clock.monotonic();
      const due = this.#blockedWindows().filter((window) => window.askAt <= now);
      if (due.length > 0) await this.#askFor(due);
      else if (this.#waiters.length > 0 && !this.#signalled) await this.#pause.wait(LOOK_AGAIN_MS);
    }
    this.#pumping = false;
  }

  /** Serves who can be served, in order; refuses who cannot be; nobody passes another who waits for the same window. */
  #serve(): void {
    const now = this.#clock.monotonic();
    const blocked = new Set<RateWindow>();
    const waiting: Waiter[] = [];
    for (const { windows } of this.#waiters) for (const window of windows) window.blocked = false;
    for (const waiter of this.#waiters) {
      const { windows, amount } = waiter;
      const lacking = windows.filter((window) => blocked.has(window) || !window.covers(amount));
      const none = lacking.find((window) => window.refuses(amount, now));
      if (lacking.length === 0) {
        waiter.take();
      } else if (none !== undefined) {
        waiter.refuse(none.refusal(amount));
      } else {
        for (const window of lacking) blocked.add(window);
        waiting.push(waiter);
      }
    }
    for (const window of blocked) window.blocked = true;
    this.#waiters = waiting;
  }

  #blockedWindows(): RateWindow[] {
    const blocked = new Set<RateWindow>();
    for (const { windows } of this.#waiters) for (const window of windows) if (window.blocked) blocked.add(window);
    return [...blocked];
  }

  async #askFor(windows: readonly RateWindow[]): Promise<void> {
    const wishes = windows.map((window) => this.#wish(window));
    let answers: RateAnswer[];
    try {
      answers = await this.#ask(wishes);
    } catch (error) {
      // What was given back with it is lost until the window ends, and so is what was granted: never too much is allowed.
      this.#failBlocked(error);
      return;
    }
    const now = this.#clock.monotonic();
    for (const [index, window] of windows.entries()) this.#answered(window, answers[index]!, now);
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

  #wish(window: RateWindow): RateWish {
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
    for (const { windows, amount } of this.#waiters) {
      if (!windows.includes(window)) continue;
      if (wish.need === 0) wish.need = Math.max(0, amount - window.idle);
      else wish.want += amount;
    }
    return wish;
  }

  #failBlocked(error: unknown): void {
    const failed = this.#waiters.filter(({ windows }) => windows.some((window) => window.blocked));
    this.#waiters = this.#waiters.filter((waiter) => !failed.includes(waiter));
    for (const { windows, fail } of failed) {
      for (const window of windows) window.blocked = false;
      fail(error);
    }
  }
}

function tooManyWaiting(): GatewayError {
  return new GatewayError('rate_limit_exceeded', 'too many requests wait for a rate limit', { retryAfterSeconds: 1 });
}
