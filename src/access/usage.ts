/** Spend of keys as `spend/` reports it. The function is injected, so neither folder imports the other. */
import type { Nano } from '../base/money.ts';

/** Spend of one key: in the current UTC day, week (from Monday) and month, and in total. */
export type Spent = Record<'daily' | 'weekly' | 'monthly' | 'lifetime', Nano>;

export interface KeyUsage {
  /** From the account balance. */
  usage: Spent;
  /** Provider cost of calls with BYOK credentials. */
  byok: Spent;
}

/** By UUID of the key; a key that is missing from the result has spent nothing. */
export type UsageOf = (keyIds: readonly string[]) => Promise<ReadonlyMap<string, KeyUsage>>;

const NOTHING: Spent = { daily: 0n, weekly: 0n, monthly: 0n, lifetime: 0n };
export const NO_USAGE: KeyUsage = { usage: NOTHING, byok: NOTHING };
