/** Definition of a budget, its windows, and the text of a refusal. Pure functions, no I/O. */
import { GatewayError, invalidField } from '../base/errors.ts';
import { type Nano, nanoFromUsd, usdFromNano } from '../base/money.ts';

export type Interval = 'lifetime' | 'daily' | 'weekly' | 'monthly';

export const INTERVALS: readonly Interval[] = ['lifetime', 'daily', 'weekly', 'monthly'];

export type Scope = 'account' | 'workspace' | 'key' | 'guardrail';

/** One key, or all keys that a member created. */
export type SpentBy = { keyId: string } | { organizationId: string; userId: string };

/**
 * A hard limit. A request may have at most one budget per scope, id and interval. Create a new object when something in
 * it changes: from the first request that carries it, this process applies it to all waiting requests too.
 */
export interface Budget {
  scope: Scope;
  /** Organization, workspace, key or guardrail id. */
  scopeId: string;
  interval: Interval;
  limitNano: Nano;
  /** True if spend on BYOK credentials counts too. */
  includeByok: boolean;
  /**
   * Count all spend of these keys in the window; absent: only spend of requests with this scope and id. Never changes.
   */
  spentBy?: SpentBy;
  /**
   * Number of changes of this budget; default 0. A request accepted before a change but processed after it is held to
   * the newer version.
   */
  version?: number;
}

/** Upper bound or actual cost of a request: in credits, and on BYOK credentials. */
export interface Charge {
  creditNano: Nano;
  byokNano: Nano;
}

export interface Refusal {
  readonly refused: true;
  readonly budget: Budget;
  /** The cost bound of the request, as this budget counts it. */
  neededNano: Nano;
  /** Left in the window: the limit minus spend and minus what running requests may still spend. */
  leftNano: Nano;
  spentNano: Nano;
  /** When the window ends; null for a lifetime budget. */
  resetsAt: number | null;
}

/**
 * 402 that names the possible cost of the request, the remaining amount and the budget that refused.
 * @param costs what costs how much, up to the amount
 */
export function refusalError(refusal: Refusal, costs = 'this request could cost'): GatewayError {
  const { budget } = refusal;
  const needed = usdFromNano(refusal.neededNano);
  const left = usdFromNano(refusal.leftNano);
  const name = budget.scope === 'account' ? 'account balance' : `${budget.interval} budget of the ${budget.scope}`;
  const resets = refusal.resetsAt === null ? null : new Date(refusal.resetsAt).toISOString();
  return new GatewayError(
    'payment_required',
    `${costs} ${needed} USD, but ${left} USD are left in the ${name}` +
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

/**
 * First millisecond of the window that contains `timeMs`: UTC midnight, Monday, the first of the month; 0 for lifetime.
 */
export function windowStart(interval: Interval, timeMs: number): number {
  if (interval === 'lifetime') return 0;
  const day = Math.floor(timeMs / DAY_MS);
  if (interval === 'daily') return day * DAY_MS;
  // 1970-01-01 was a Thursday, three days after a Monday.
  if (interval === 'weekly') return (day - ((((day + 3) % 7) + 7) % 7)) * DAY_MS;
  const date = new Date(timeMs);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1);
}

/** First millisecond after the window that contains `timeMs`; null for lifetime. Windows are half-open. */
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

/** Interval and start of a counter id, from its slash on; shared by all counters of that window. */
export function windowTail(id: string): string {
  return id.slice(id.lastIndexOf('/', id.lastIndexOf('/') - 1));
}

export function chargeIn(budget: { includeByok: boolean }, charge: Charge): Nano {
  return budget.includeByok ? charge.creditNano + charge.byokNano : charge.creditNano;
}

/** The largest limit that can be set; reported for unlimited where the wire requires a number. */
export const MAX_LIMIT_USD = 1_000_000_000;

/**
 * Parses a limit from a client, rounded to the nearest nano-dollar, so that a sum of floats is not refused for its 17th
 * digit. Throws GatewayError 400 with `path` if it is too large or rounds to zero.
 */
export function limitFromUsd(path: string, usd: number): Nano {
  if (usd > MAX_LIMIT_USD) throw invalidField(path, `must be at most ${MAX_LIMIT_USD}`);
  const nano = nanoFromUsd(usd.toFixed(9));
  if (nano === 0n) throw invalidField(path, 'must be at least 0.000000001');
  return nano;
}
