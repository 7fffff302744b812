/** What a budget is, its windows, and how a refusal reads. Rules only, no I/O. */
import { GatewayError, invalidField } from '../base/errors.ts';
import { type Nano, nanoFromUsd, usdFromNano } from '../base/money.ts';

export type Interval = 'lifetime' | 'daily' | 'weekly' | 'monthly';

export const INTERVALS: readonly Interval[] = ['lifetime', 'daily', 'weekly', 'monthly'];

export type Scope = 'account' | 'workspace' | 'key' | 'guardrail';

/** One key, or all keys that a member has made. */
export type SpentBy = { keyId: string } | { organizationId: string; userId: string };

/**
 * A hard limit. At most one of a scope, id and interval may stand in one request. Make a new object when something in it
 * changes: from the first request that comes with it on, everybody who waits in this process is held to it.
 */
export interface Budget {
  scope: Scope;
  /** Organization, workspace, key or guardrail id. */
  scopeId: string;
  interval: Interval;
  limitNano: Nano;
  /** Spend through keys of the customer's own counts too. */
  includeByok: boolean;
  /** Whose spend counts, all of the window's; absent: that of requests that came with this scope and id. Never changes. */
  spentBy?: SpentBy;
  /**
   * Counts the changes of a budget. A request that was accepted before a change and comes after it is held to the newer
   * form. Default 0.
   */
  version?: number;
}

/** The most that a request could cost, or what it did cost: in credits, and through a key of the customer's own. */
export interface Charge {
  creditNano: Nano;
  byokNano: Nano;
}

export interface Refusal {
  readonly refused: true;
  readonly budget: Budget;
  /** What the request could cost in this budget's terms. */
  neededNano: Nano;
  /** What is left in the window: the limit without what is spent and what running requests may still spend. */
  leftNano: Nano;
  spentNano: Nano;
  /** When the window ends; null for a lifetime budget. */
  resetsAt: number | null;
}

/** 402 that says what the request could cost, what is left, and which budget refused (design promise 2). */
export function refusalError(refusal: Refusal): GatewayError {
  const { budget } = refusal;
  const needed = usdFromNano(refusal.neededNano);
  const left = usdFromNano(refusal.leftNano);
  const name = budget.scope === 'account' ? 'account balance' : `${budget.interval} budget of the ${budget.scope}`;
  const resets = refusal.resetsAt === null ? null : new Date(refusal.resetsAt).toISOString();
  return new GatewayError(
    'payment_required',
    `this request could cost ${needed} USD, but ${left} USD are left in the ${name}` +
      (resets === null ? '' : `, which resets at ${resets}`),
    {
      metadata: {
        error_type: 'payment_required',
        could_cost_usd: needed,
        left_usd: left,
        budget: {
          scope: budget.scope,
          id: budget.scopeId,
          interval: budget.interval,
          limit_usd: usdFromNano(budget.limitNano),
          spent_usd: usdFromNano(refusal.spentNano),
          resets_at: resets,
        },
      },
    },
  );
}

const DAY_MS = 86_400_000;

/** First millisecond of the window that holds `timeMs`: UTC midnight, Monday, the first of the month; 0 for lifetime. */
export function windowStart(interval: Interval, timeMs: number): number {
  if (interval === 'lifetime') return 0;
  const day = Math.floor(timeMs / DAY_MS);
  if (interval === 'daily') return day * DAY_MS;
  // 1970-01-01 was a Thursday, three days behind a Monday.
  if (interval === 'weekly') return (day - ((((day + 3) % 7) + 7) % 7)) * DAY_MS;
  const date = new Date(timeMs);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1);
}

/** First millisecond behind the window that holds `timeMs`; null for lifetime. Windows are half-open. */
export function windowEnd(interval: Interval, timeMs: number): number | null {
  const start = windowStart(interval, timeMs);
  if (interval === 'lifetime') return null;
  if (interval === 'daily') return start + DAY_MS;
  if (interval === 'weekly') return start + 7 * DAY_MS;
  const date = new Date(start);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1);
}

/** Names one counter. Sorting these names is the lock order in the database. */
export function windowId(scope: Scope, scopeId: string, interval: Interval, timeMs: number): string {
  return `${scope}/${scopeId}/${interval}/${windowStart(interval, timeMs)}`;
}

/** What names the interval and its begin in the names of all counters of that time, from its slash on. */
export function windowTail(id: string): string {
  return id.slice(id.lastIndexOf('/', id.lastIndexOf('/') - 1));
}

export function chargeIn(budget: { includeByok: boolean }, charge: Charge): Nano {
  return budget.includeByok ? charge.creditNano + charge.byokNano : charge.creditNano;
}

/** The largest limit that can be set; what has no limit at all is shown as this where the wire asks for a number. */
export const MAX_LIMIT_USD = 1_000_000_000;

/**
 * A limit that a client gave, to the nearest nano-dollar: a sum that was made of floats must not be refused for its 17th
 * digit. Throws GatewayError 400 with `path` where it is too large or rounds to nothing.
 */
export function limitFromUsd(path: string, usd: number): Nano {
  if (usd > MAX_LIMIT_USD) throw invalidField(path, `must be at most ${MAX_LIMIT_USD}`);
  const nano = nanoFromUsd(usd.toFixed(9));
  if (nano === 0n) throw invalidField(path, 'must be at least 0.000000001');
  return nano;
}
