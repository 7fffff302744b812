/**
 * Leases of budgets: the amount that this process may spend without a query. A reservation that the leases cover is
 * made at once; otherwise it queues (`lease-wait-queue.ts`). It is refused if spend leaves no room, or if nothing is
 * returned in time.
 */
import type { Clock } from '../base/clock.ts';
import type { Nano } from '../base/money.ts';
import { type Budget, type Charge, chargeIn, type Refusal } from './budget.ts';
import { LEASE_LIMITS, type LeaseLimits, type LeaseStore, LeaseWaitQueue } from './lease-wait-queue.ts';
import type { Taken } from './record.ts';
import { HeldReservation } from './reservation.ts';
import type { LeaseRequest } from './store.ts';
import { BudgetWindow, type Part, refusalOfExcess } from './window.ts';

const CONTESTED_MS = 1_000;
const UNUSED_MS = 300_000;

export class Leases {
  readonly windows = new Map<string, BudgetWindow>();
  /** A database answer was lost: the leases must be read again. */
  uncertain = false;

  readonly #store: LeaseStore;
  readonly #clock: Clock;
  readonly #byBudget = new WeakMap<Budget, BudgetWindow>();
  readonly #queue: LeaseWaitQueue;
  #returning = new Set<BudgetWindow>();
  #isReturning = false;

  constructor(store: LeaseStore, clock: Clock, limits: LeaseLimits = LEASE_LIMITS) {
    this.#store = store;
    this.#clock = clock;
    this.#queue = new LeaseWaitQueue(store, clock, limits, () => {
      this.uncertain = true;
    });
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
    const refusal = refusalOfExcess(parts);
    if (refusal !== undefined) return refusal;
    return this.#queue.wait(parts, () => this.#hold(parts, bound), 'last');
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
    return refusalOfExcess(extra) ?? this.#queue.wait(extra, grow, 'first');
  }

  /** @internal Replaces the held parts by the actual cost; a cost of zero releases them. */
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
      if (window.blocked) this.#queue.signal();
      if (window.contestedUntil > now) this.#scheduleReturn(window);
    }
    return taken;
  }

  /** The database has moved these reservations out of this process's leases. */
  moved(parts: readonly Part[]): void {
    for (const { window, nano } of parts) {
      window.moved(nano);
      window.holders -= 1;
      window.lastUseAt = this.#clock.monotonic();
    }
  }

  /** The database has entered these rows. Windows in `lost` no longer have a lease there. */
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
    this.#scheduleReturn(window);
  }

  /** Another process returned a part of this window. */
  returned(id: string): void {
    const window = this.windows.get(id);
    if (window === undefined || !window.blocked) return;
    window.askAgainAt = 0;
    window.progressAt = this.#clock.monotonic();
    this.#queue.signal();
  }

  /** Returns leases of windows that have ended or were unused for five minutes, and drops empty windows. */
  sweep(): void {
    const now = this.#clock.monotonic();
    const time = this.#clock.now();
    for (const window of this.windows.values()) {
      if (window.empty) this.windows.delete(window.id);
      else if (window.idle > 0n && !window.blocked && (window.end <= time || window.lastUseAt + UNUSED_MS < now)) {
        this.#scheduleReturn(window);
      }
    }
  }

  /**
   * Adopts the leases that the database records for this process; no lease may be in transit meanwhile.
   * @returns requests that return leases of windows that this process no longer tracks
   */
  reconcile(held: ReadonlyMap<string, Nano>): LeaseRequest[] {
    for (const window of this.windows.values()) {
      window.lease = (held.get(window.id) ?? 0n) + window.forced - window.leaving;
    }
    this.uncertain = false;
    this.#queue.signal();
    const forgotten = [...held].filter(([id, nano]) => nano > 0n && !this.windows.has(id));
    return forgotten.map(([id, nano]) => returnRequest(id, nano));
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

  #scheduleReturn(window: BudgetWindow): void {
    if (window.idle <= 0n) return;
    this.#returning.add(window);
    if (!this.#isReturning) void this.#returnAll();
  }

  async #returnAll(): Promise<void> {
    this.#isReturning = true;
    while (this.#returning.size > 0) {
      // Everything settled in this turn is returned together, after local waiters were served.
      await Promise.resolve();
      this.#queue.serve();
      const windows = [...this.#returning].filter((window) => window.idle > 0n);
      this.#returning.clear();
      if (windows.length > 0) await this.#returnNow(windows);
    }
    this.#isReturning = false;
  }

  async #returnNow(windows: readonly BudgetWindow[]): Promise<void> {
    const requests = windows.map((window) => returnRequest(window.id, window.takeIdle()));
    try {
      await this.#store.ask(requests);
    } catch {
      // Leases that were not returned reappear when they are read from the database.
      this.uncertain = true;
    }
    for (const [index, window] of windows.entries()) window.leaving -= requests[index]!.backNano;
    // Without this announcement the other processes still ask again periodically.
    await this.#store.announceReturn(windows.map((window) => window.id)).catch(() => {});
  }
}

/** A request that only returns. */
function returnRequest(windowId: string, backNano: Nano): LeaseRequest {
  return { windowId, limitNano: 0n, includeByok: false, backNano, needNano: 0n, wantNano: 0n, spareNano: 0n };
}
