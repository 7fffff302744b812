/**
 * One process's view of one budget window. Pure arithmetic.
 *
 * `lease` is this process's part of the limit. It consists of what running requests may spend (`reserved`), what
 * settled requests spent but the database does not know yet (`unflushed`), and the idle remainder, which covers new
 * requests without a query.
 */
import type { Nano } from '../base/money.ts';
import { type Budget, type Refusal, windowEnd, windowId, windowStart } from './budget.ts';

/** Number of further requests that a first lease covers. */
const FEW_REQUESTS = 11n;
/** A lease that lasted less than this was too small, */
const SHORT_MS = 1_000;
/** and one that lasts longer than this was too large. */
const LONG_MS = 10_000;

export class BudgetWindow {
  readonly id: string;
  readonly start: number;
  /** Infinity for lifetime. */
  readonly end: number;
  /** The latest version of the budget that a request carried. */
  budget: Budget;
  lease: Nano = 0n;
  reserved: Nano = 0n;
  unflushed: Nano = 0n;
  /**
   * The part of `lease` without a grant: requests cost more than their bound. It enters the database with their rows.
   */
  forced: Nano = 0n;
  /** Being returned: no longer in `lease`, not confirmed by the database. */
  leaving: Nano = 0n;
  /** The limit was lowered, or the budget counts differently: the lease must be requested again. */
  stale = false;
  /** Number of reservations, made or waiting, that refer to this window. */
  holders = 0;
  /** Requests wait for this window, so later ones must queue. */
  blocked = false;
  /** True once the database has been asked about this window. */
  known = false;
  /** Spend in the last answer plus what this process has entered since: a lower bound. */
  used: Nano = 0n;
  /** Leases of other processes in the last answer. */
  othersLeased: Nano = 0n;
  /** Monotonic times in ms. */
  /** When the query began whose answer is the latest one. */
  askedAt = Number.NEGATIVE_INFINITY;
  askAgainAt = 0;
  recallAgainAt = 0;
  contestedUntil = 0;
  exhaustedUntil = 0;
  progressAt = 0;
  lastUseAt = 0;
  /** The last grant. */
  grantedAt = Number.NEGATIVE_INFINITY;
  grantedNano: Nano = 0n;

  constructor(budget: Budget, timeMs: number) {
    this.id = windowId(budget.scope, budget.scopeId, budget.interval, timeMs);
    this.start = windowStart(budget.interval, timeMs);
    this.end = windowEnd(budget.interval, timeMs) ?? Number.POSITIVE_INFINITY;
    this.budget = budget;
  }

  get idle(): Nano {
    return this.lease - this.reserved - this.unflushed;
  }

  /** True if the window can be dropped without losing state. */
  get empty(): boolean {
    return this.holders === 0 && this.lease === 0n && this.unflushed === 0n && this.leaving === 0n && !this.blocked;
  }

  /** Takes over a newer version of the budget; ignores the older version of a request accepted before a change. */
  adopt(budget: Budget): void {
    const before = this.budget;
    if (before === budget || (budget.version ?? 0) < (before.version ?? 0)) return;
    this.budget = budget;
    if (budget.includeByok !== before.includeByok) this.known = false;
    if (budget.includeByok !== before.includeByok || budget.limitNano < before.limitNano) this.stale = true;
  }

  covers(nano: Nano): boolean {
    return nano === 0n || (!this.stale && this.idle >= nano);
  }

  /** True if `nano` cannot fit even if all running requests turn out to be free. Spend never decreases. */
  exceeds(nano: Nano): boolean {
    return nano > 0n && this.known && this.used + this.unflushed + nano > this.budget.limitNano;
  }

  granted(nano: Nano, now: number): void {
    if (nano === 0n) return;
    this.lease += nano;
    this.grantedNano = nano;
    this.grantedAt = now;
  }

  /**
   * The amount to lease ahead of requests. Other processes cannot use the leases of a process that dies without its
   * journal, so a lease covers a few requests at first, and grows while each lasts less than a second.
   */
  spareNano(now: number, needNano: Nano): Nano {
    const few = FEW_REQUESTS * needNano;
    const age = now - this.grantedAt;
    if (age > LONG_MS) return few;
    const again = age < SHORT_MS ? 2n * this.grantedNano : this.grantedNano;
    return again > few ? again : few;
  }

  /** Removes the idle lease and returns its amount, to be given back to the database. */
  takeIdle(): Nano {
    const { idle } = this;
    if (idle <= 0n) return 0n;
    this.lease -= idle;
    this.leaving += idle;
    return idle;
  }

  /** Replaces `reserved` by the actual cost of a request; returns the part that the lease did not cover. */
  settle(reservedNano: Nano, costNano: Nano): Nano {
    this.reserved -= reservedNano;
    this.unflushed += costNano;
    const missing = -this.idle;
    if (missing <= 0n) return 0n;
    this.lease += missing;
    this.forced += missing;
    return missing;
  }

  /** A reservation has left this process together with its part of the lease. It is not spent yet. */
  moved(nano: Nano): void {
    this.lease -= nano;
    this.reserved -= nano;
    this.othersLeased += nano;
  }

  /** The database has entered a settled request. */
  entered(costNano: Nano, forcedNano: Nano): void {
    this.lease -= costNano;
    this.unflushed -= costNano;
    this.forced -= forcedNano;
    this.used += costNano;
  }

  refusal(neededNano: Nano): Refusal {
    const { budget } = this;
    const spent = this.used + this.unflushed;
    const left = budget.limitNano - spent - this.reserved - this.othersLeased;
    return {
      refused: true,
      budget,
      neededNano,
      leftNano: left > 0n ? left : 0n,
      spentNano: spent,
      resetsAt: this.end === Number.POSITIVE_INFINITY ? null : this.end,
    };
  }
}

/** One window's part of a reservation. */
export interface Part {
  readonly window: BudgetWindow;
  nano: Nano;
}

/** The refusal of the first part that can never fit. */
export function refusalOfExcess(parts: readonly Part[]): Refusal | undefined {
  const part = parts.find(({ window, nano }) => window.exceeds(nano));
  return part?.window.refusal(part.nano);
}
