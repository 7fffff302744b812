/**
 * Leases of budgets: what this process may spend without asking. A reservation that the leases cover is made at once;
 * otherwise it waits in line while this process asks the database, recalls idle leases of the other processes, and
 * waits for running requests to cost less than their bound. It is refused when what is spent leaves no room, or when
 * nothing came back in time.
 *
 * Nothing is held while waiting: a waiting reservation takes all of its windows in one step or none, so no two can wait
 * for each other, whatever order their budgets come in.
 */
import type { Clock, Timer } from '../base/clock.ts';
import { GatewayError } from '../base/errors.ts';
import type { Nano } from '../base/money.ts';
import { type Budget, type Charge, chargeIn, type Refusal } from './budget.ts';
import type { Reservation } from './index.ts';
import type { Taken } from './record.ts';
import type { LeaseAnswer, LeaseWish } from './store.ts';
import { BudgetWindow } from './window.ts';

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
const CONTESTED_MS = 1_000;
const BARREN_MS = 5_000;
const BARREN_PATIENCE_MS = 250;
const UNUSED_MS = 300_000;
const SPARE_PARTS = 8n;

/** One window's part of a reservation. */
interface Part {
  readonly window: BudgetWindow;
  nano: Nano;
}

interface Waiter {
  parts: readonly Part[];
  since: number;
  take(): void;
  refuse(refusal: Refusal): void;
  fail(error: unknown): void;
}

export class Leases {
  readonly windows = new Map<string, BudgetWindow>();
  /** An answer of the database was lost: the leases must be read again. */
  uncertain = false;

  readonly #desk: LeaseDesk;
  readonly #clock: Clock;
  readonly #limits: LeaseLimits;
  readonly #byBudget = new WeakMap<Budget, BudgetWindow>();
  #waiters: Waiter[] = [];
  #pumping = false;
  #wake: (() => void) | undefined;
  #returning = new Set<BudgetWindow>();
  #giving = false;

  constructor(desk: LeaseDesk, clock: Clock, limits: LeaseLimits = LEASE_LIMITS) {
    this.#desk = desk;
    this.#clock = clock;
    this.#limits = limits;
  }

  reserve(
    budgets: readonly Budget[],
    bound: Charge,
    acceptedAt: number,
  ): HeldReservation | Refusal | Promise<HeldReservation | Refusal> {
    const parts: Part[] = [];
    let covered = true;
    for (const budget of budgets) {
      const window = this.#window(budget, acceptedAt);
      const nano = chargeIn(budget, bound);
      parts.push({ window, nano });
      if (nano > 0n && (window.blocked || !window.covers(nano))) covered = false;
    }
    if (covered) return this.#hold(parts, bound);
    const refusal = hopeless(parts);
    if (refusal !== undefined) return refusal;
    return this.#wait(parts, () => this.#hold(parts, bound), false);
  }

  #hold(parts: readonly Part[], bound: Charge): HeldReservation {
    for (const { window, nano } of parts) {
      window.reserved += nano;
      window.holders += 1;
    }
    return new HeldReservation(this, parts, bound);
  }

  /** @internal Used by the reservation. */
  extend(reservation: HeldReservation, more: Charge): true | Refusal | Promise<true | Refusal> {
    const extra = reservation.parts.map((part) => ({
      window: part.window,
      nano: chargeIn(part.window.budget, more),
    }));
    const grow = (): true => {
      reservation.grow(extra, more);
      return true;
    };
    if (extra.every(({ window, nano }) => nano === 0n || (!window.blocked && window.covers(nano)))) return grow();
    return hopeless(extra) ?? this.#wait(extra, grow, true);
  }

  /** @internal Turns the parts into what was spent; with no cost they are released. */
  settle(parts: readonly Part[], cost: Charge): Taken[] {
    const taken: Taken[] = [];
    const now = this.#clock.monotonic();
    for (const { window, nano } of parts) {
      const costNano = chargeIn(window.budget, cost);
      const forcedNano = window.settle(nano, costNano);
      window.holders -= 1;
      window.lastUseAt = now;
      if (cost.creditNano !== 0n || cost.byokNano !== 0n)
        taken.push({ windowId: window.id, nano: costNano, forcedNano });
      if (nano === 0n) continue;
      window.progressAt = now;
      if (window.blocked) this.#signal();
      if (window.contestedUntil > now) this.#giveBack(window);
    }
    return taken;
  }

  /** The database has entered these rows. Windows in `lost` have no lease there any more. */
  entered(taken: readonly Taken[], lost: readonly string[]): void {
    for (const part of taken) {
      const window = this.windows.get(part.windowId);
      window?.entered(part.nano, part.forcedNano);
    }
    for (const id of lost) {
      const window = this.windows.get(id);
      if (window !== undefined) window.lease = window.reserved + window.unflushed;
    }
  }

  /** Another process needs this window. */
  recalled(id: string): void {
    const window = this.windows.get(id);
    if (window === undefined) return;
    window.contestedUntil = this.#clock.monotonic() + CONTESTED_MS;
    this.#giveBack(window);
  }

  /** Another process gave back something of this window. */
  returned(id: string): void {
    const window = this.windows.get(id);
    if (window === undefined || !window.blocked) return;
    window.askAgainAt = 0;
    window.progressAt = this.#clock.monotonic();
    this.#signal();
  }

  /** Gives back leases of windows that are over or were not used for five minutes, and forgets empty ones. */
  sweep(): void {
    const now = this.#clock.monotonic();
    const time = this.#clock.now();
    for (const window of this.windows.values()) {
      if (window.empty) this.windows.delete(window.id);
      else if (window.idle > 0n && !window.blocked && (window.end <= time || window.lastUseAt + UNUSED_MS < now)) {
        this.#giveBack(window);
      }
    }
  }

  /** Takes over what the database says that this process holds; nothing may be on its way to it. */
  reconcile(held: ReadonlyMap<string, Nano>): void {
    for (const window of this.windows.values()) window.lease = (held.get(window.id) ?? 0n) + window.forced;
    this.uncertain = false;
    this.#signal();
  }

  #window(budget: Budget, timeMs: number): BudgetWindow {
    const last = this.#byBudget.get(budget);
    if (last !== undefined && last.budget === budget && timeMs >= last.start && timeMs < last.end) {
      if (this.windows.get(last.id) === last) return last;
    }
    const fresh = new BudgetWindow(budget, timeMs);
    const window = this.windows.get(fresh.id) ?? fresh;
    if (window === fresh) {
      window.lastUseAt = this.#clock.monotonic();
      this.windows.set(window.id, window);
    }
    window.adopt(budget);
    this.#byBudget.set(budget, window);
    return window;
  }

  #wait<T>(parts: readonly Part[], taken: () => T, first: boolean): Promise<T | Refusal> {
    if (this.#waiters.length >= this.#limits.maxWaiting) throw tooManyWaiting();
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        parts,
        since: this.#clock.monotonic(),
        take: () => resolve(taken()),
        refuse: resolve,
        fail: reject,
      };
      // Who holds something already goes first: the sooner it ends, the sooner it gives back.
      if (first) this.#waiters.unshift(waiter);
      else this.#waiters.push(waiter);
      for (const part of parts) if (!part.window.covers(part.nano)) part.window.blocked = true;
      if (this.#pumping) this.#signal();
      else void this.#pump();
    });
  }

  #signal(): void {
    this.#wake?.();
  }

  async #pump(): Promise<void> {
    this.#pumping = true;
    while (this.#waiters.length > 0) {
      this.#serve();
      const now = this.#clock.monotonic();
      const due = this.#blockedWindows().filter((window) => window.stale || window.askAgainAt <= now);
      if (due.length > 0) await this.#askAndRecall(due);
      this.#expire();
      if (this.#waiters.length > 0 && !this.#blockedWindows().some((window) => window.askAgainAt === 0)) {
        await this.#pause();
      }
    }
    this.#pumping = false;
  }

  async #askAndRecall(due: readonly BudgetWindow[]): Promise<void> {
    try {
      await this.#ask(due);
      this.#serve();
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
  #serve(): void {
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
      this.uncertain = true;
      throw error;
    }
    const now = this.#clock.monotonic();
    for (const [index, window] of windows.entries()) {
      const answer = answers[index]!;
      window.lease += answer.grantedNano;
      window.used = answer.usedNano;
      window.othersLeased = answer.leasedNano - (window.lease - window.forced);
      window.known = true;
      // The limit may have been lowered once more meanwhile.
      window.stale = window.budget.limitNano < wishes[index]!.limitNano;
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
    };
    if (window.stale && window.idle > 0n) {
      wish.backNano = window.idle;
      window.lease -= wish.backNano;
    }
    for (const waiter of this.#waiters) {
      for (const part of waiter.parts) {
        if (part.window !== window || part.nano === 0n) continue;
        if (wish.needNano === 0n) wish.needNano = part.nano - window.idle;
        else wish.wantNano += part.nano;
      }
    }
    if (wish.needNano < 0n) wish.needNano = 0n;
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

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      let timer: Timer | undefined;
      this.#wake = () => {
        this.#wake = undefined;
        timer?.cancel();
        resolve();
      };
      timer = this.#clock.timer(ASK_AGAIN_MS, this.#wake);
    });
  }

  #giveBack(window: BudgetWindow): void {
    if (window.idle <= 0n) return;
    this.#returning.add(window);
    if (!this.#giving) void this.#give();
  }

  async #give(): Promise<void> {
    this.#giving = true;
    while (this.#returning.size > 0) {
      // Everything that is settled in this turn goes back together, after those who wait here were served.
      await Promise.resolve();
      this.#serve();
      const windows = [...this.#returning].filter((window) => window.idle > 0n);
      this.#returning.clear();
      const wishes = windows.map((window) => {
        const backNano = window.idle;
        window.lease -= backNano;
        return {
          windowId: window.id,
          limitNano: window.budget.limitNano,
          includeByok: window.budget.includeByok,
          backNano,
          needNano: 0n,
          wantNano: 0n,
          spareParts: 0n,
        };
      });
      if (wishes.length === 0) continue;
      try {
        await this.#desk.ask(wishes);
        await this.#desk.announceReturn(wishes.map((wish) => wish.windowId));
      } catch {
        // What was not given back is found again when the leases are read from the database.
        this.uncertain = true;
      }
    }
    this.#giving = false;
  }
}

/** A reservation as the ledger sees it. */
export class HeldReservation implements Reservation {
  readonly refused = undefined;
  readonly parts: readonly Part[];
  readonly #leases: Leases;
  #held: Charge;
  #open = true;

  constructor(leases: Leases, parts: readonly Part[], held: Charge) {
    this.#leases = leases;
    this.parts = parts;
    this.#held = held;
  }

  get held(): Charge {
    return this.#held;
  }

  extend(more: Charge): true | Refusal | Promise<true | Refusal> {
    return this.#open ? this.#leases.extend(this, more) : true;
  }

  /** @internal Takes `extra`, which its windows cover, unless it has been settled meanwhile. */
  grow(extra: readonly Part[], more: Charge): void {
    if (!this.#open) return;
    for (const [index, part] of this.parts.entries()) {
      part.nano += extra[index]!.nano;
      part.window.reserved += extra[index]!.nano;
    }
    this.#held = {
      creditNano: this.#held.creditNano + more.creditNano,
      byokNano: this.#held.byokNano + more.byokNano,
    };
  }

  /** What the row takes from the leases. Empty the second time. */
  settle(cost: Charge): Taken[] {
    if (!this.#open) return [];
    this.#open = false;
    return this.#leases.settle(this.parts, cost);
  }

  release(): void {
    this.settle(FREE);
  }
}

const FREE: Charge = { creditNano: 0n, byokNano: 0n };

function hopeless(parts: readonly Part[]): Refusal | undefined {
  const part = parts.find(({ window, nano }) => window.hopeless(nano));
  return part?.window.refusal(part.nano);
}

function tooManyWaiting(): GatewayError {
  return new GatewayError('rate_limit_exceeded', 'too many requests wait for a budget', { retryAfterSeconds: 1 });
}
