/**
 * Reservations that the leases do not cover, in the order in which they came. While any waits, the process asks the
 * database for what is missing, recalls idle leases of the other processes, and looks again whenever something comes back.
 *
 * Nothing is held while waiting: a waiting reservation takes all of its windows in one step or none, so no two can wait
 * for each other, whatever order their budgets come in.
 */
import { type Clock, Pause } from '../base/clock.ts';
import { GatewayError } from '../base/errors.ts';
import type { Refusal } from './budget.ts';
import type { LeaseAnswer, LeaseWish } from './store.ts';
import { type BudgetWindow, hopeless, type Part } from './window.ts';

/** The database's side. Every call may reject. */
export interface LeaseDesk {
  ask(wishes: readonly LeaseWish[]): Promise<LeaseAnswer[]>;
  /** Asks every other process to give back what it does not need of these windows. */
  recall(windowIds: readonly string[]): Promise<void>;
  /** Tells the others that something was given back. */
  announceReturn(windowIds: readonly string[]): Promise<void>;
}

export interface LeaseLimits {
  /** A waiting reservation is refused when nothing was settled or given back for this long. */
  patienceMs: number;
  /** And after this long in any case. */
  waitMs: number;
  maxWaiting: number;
}

export const LEASE_LIMITS: LeaseLimits = { patienceMs: 2_000, waitMs: 30_000, maxWaiting: 10_000 };

const ASK_AGAIN_MS = 100;
const RECALL_AGAIN_MS = 400;
const BARREN_MS = 5_000;
const BARREN_PATIENCE_MS = 250;
const SPARE_PARTS = 8n;

interface Waiter {
  parts: readonly Part[];
  since: number;
  take(): void;
  refuse(refusal: Refusal): void;
  fail(error: unknown): void;
}

export class WaitingLine {
  readonly #desk: LeaseDesk;
  readonly #clock: Clock;
  readonly #limits: LeaseLimits;
  readonly #onUncertain: () => void;
  readonly #pause: Pause;
  #waiters: Waiter[] = [];
  #pumping = false;

  constructor(desk: LeaseDesk, clock: Clock, limits: LeaseLimits, onUncertain: () => void) {
    this.#desk = desk;
    this.#clock = clock;
    this.#limits = limits;
    this.#onUncertain = onUncertain;
    this.#pause = new Pause(clock);
  }

  /** Resolves with what `take` yields when all of `parts` fit, or with the refusal. Throws GatewayError 429 when the line is full. */
  wait<T>(parts: readonly Part[], taken: () => T, first: boolean): Promise<T | Refusal> {
    if (this.#waiters.length >= this.#limits.maxWaiting) throw tooManyWaiting();
    // A window that somebody waits for must not be forgotten.
    for (const part of parts) part.window.holders += 1;
    const leave = () => {
      for (const part of parts) part.window.holders -= 1;
    };
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        parts,
        since: this.#clock.monotonic(),
        take: () => {
          leave();
          resolve(taken());
        },
        refuse(refusal) {
          leave();
          resolve(refusal);
        },
        fail(error) {
          leave();
          reject(error);
        },
      };
      // Who holds something already goes first: the sooner it ends, the sooner it gives back.
      if (first) this.#waiters.unshift(waiter);
      else this.#waiters.push(waiter);
      for (const part of parts) if (!part.window.covers(part.nano)) part.window.blocked = true;
      if (this.#pumping) this.signal();
      else void this.#pump();
    });
  }

  /** Something came back here. */
  signal(): void {
    this.#pause.end();
  }

  async #pump(): Promise<void> {
    this.#pumping = true;
    while (this.#waiters.length > 0) {
      this.serve();
      const now = this.#clock.monotonic();
      const due = this.#blockedWindows().filter((window) => window.stale || window.askAgainAt <= now);
      if (due.length > 0) await this.#askAndRecall(due);
      this.#expire();
      if (this.#waiters.length > 0 && !this.#blockedWindows().some((window) => window.askAgainAt === 0)) {
        await this.#pause.wait(ASK_AGAIN_MS);
      }
    }
    this.#pumping = false;
  }

  async #askAndRecall(due: readonly BudgetWindow[]): Promise<void> {
    try {
      await this.#ask(due);
      this.serve();
      const now = this.#clock.monotonic();
      const recall = this.#blockedWindows().filter((window) => window.othersLeased > 0n && window.recallAgainAt <= now);
      if (recall.length === 0) return;
      for (const window of recall) window.recallAgainAt = now + RECALL_AGAIN_MS;
      await this.#desk.recall(recall.map((window) => window.id));
    } catch (error) {
      this.#failBlocked(error);
    }
  }

  /** Serves who can be served, in order; refuses who can never be; nobody passes another who waits for the same window. */
  serve(): void {
    const blocked = new Set<BudgetWindow>();
    const waiting: Waiter[] = [];
    for (const waiter of this.#waiters) for (const part of waiter.parts) part.window.blocked = false;
    for (const waiter of this.#waiters) {
      const lacking = waiter.parts.filter(
        (part) => part.nano > 0n && (blocked.has(part.window) || !part.window.covers(part.nano)),
      );
      if (lacking.length === 0) {
        waiter.take();
        continue;
      }
      const refusal = hopeless(waiter.parts);
      if (refusal !== undefined) {
        waiter.refuse(refusal);
        continue;
      }
      for (const part of lacking) blocked.add(part.window);
      waiting.push(waiter);
    }
    for (const window of blocked) window.blocked = true;
    this.#waiters = waiting;
  }

  #blockedWindows(): BudgetWindow[] {
    const windows = new Set<BudgetWindow>();
    for (const waiter of this.#waiters) {
      for (const part of waiter.parts) if (part.window.blocked) windows.add(part.window);
    }
    return [...windows];
  }

  async #ask(windows: readonly BudgetWindow[]): Promise<void> {
    const wishes = windows.map((window) => this.#wish(window));
    let answers: LeaseAnswer[];
    try {
      answers = await this.#desk.ask(wishes);
    } catch (error) {
      this.#onUncertain();
      throw error;
    } finally {
      for (const [index, window] of windows.entries()) window.leaving -= wishes[index]!.backNano;
    }
    const now = this.#clock.monotonic();
    for (const [index, window] of windows.entries()) {
      const answer = answers[index]!;
      window.lease += answer.grantedNano;
      window.used = answer.usedNano;
      window.othersLeased = answer.leasedNano - (window.lease - window.forced);
      window.known = wishes[index]!.includeByok === window.budget.includeByok;
      // Leases that were granted under a higher limit stand until they come back: as long as the sum is over the limit,
      // nobody may spend what becomes idle. The limit may also have been lowered once more meanwhile.
      window.stale = !window.known || answer.usedNano + answer.leasedNano > window.budget.limitNano;
      window.askAgainAt = answer.grantedNano > 0n ? 0 : now + ASK_AGAIN_MS;
    }
  }

  #wish(window: BudgetWindow): LeaseWish {
    const wish: LeaseWish = {
      windowId: window.id,
      limitNano: window.budget.limitNano,
      includeByok: window.budget.includeByok,
      backNano: 0n,
      needNano: 0n,
      wantNano: 0n,
      spareParts: window.contestedUntil > this.#clock.monotonic() ? 0n : SPARE_PARTS,
      spentBy: window.budget.spentBy,
    };
    if (window.stale) wish.backNano = window.takeIdle();
    for (const waiter of this.#waiters) {
      for (const part of waiter.parts) {
        if (part.window !== window || part.nano === 0n) continue;
        // Who lacks nothing of this window waits for another one.
        if (wish.needNano > 0n) wish.wantNano += part.nano;
        else if (part.nano > window.idle) wish.needNano = part.nano - window.idle;
      }
    }
    return wish;
  }

  #expire(): void {
    const now = this.#clock.monotonic();
    this.#waiters = this.#waiters.filter((waiter) => {
      const part = waiter.parts.find(
        ({ window, nano }) => nano > 0n && window.blocked && this.#gaveUp(waiter, window, now),
      );
      if (part === undefined) return true;
      part.window.barrenUntil = now + BARREN_MS;
      for (const { window } of waiter.parts) window.blocked = false;
      waiter.refuse(part.window.refusal(part.nano));
      return false;
    });
  }

  #gaveUp(waiter: Waiter, window: BudgetWindow, now: number): boolean {
    if (now >= waiter.since + this.#limits.waitMs) return true;
    const patienceMs = window.barrenUntil > now ? BARREN_PATIENCE_MS : this.#limits.patienceMs;
    return now >= Math.max(waiter.since, window.progressAt) + patienceMs;
  }

  #failBlocked(error: unknown): void {
    const failed = this.#waiters.filter((waiter) => waiter.parts.some((part) => part.window.blocked));
    this.#waiters = this.#waiters.filter((waiter) => !failed.includes(waiter));
    for (const waiter of failed) {
      for (const part of waiter.parts) part.window.blocked = false;
      waiter.fail(error);
    }
  }
}

function tooManyWaiting(): GatewayError {
  return new GatewayError('rate_limit_exceeded', 'too many requests wait for a budget', { retryAfterSeconds: 1 });
}
