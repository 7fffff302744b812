/** What keys have spent, as `spend/` reports it. The function is handed in, so that neither folder imports the other. */
import type { Nano } from '../base/money.ts';

/** Spend of one key: in the current UTC day, week (from Monday) and month, and of all time. */
export type Spent = Record<'daily' | 'weekly' | 'monthly' | 'lifetime', Nano>;

export interface KeyUsage {
  /** Of the account's money. */
  usage: Spent;
  /** What calls with the customer's own provider keys cost at their providers. */
  byok: Spent;
}

/** By UUID of the key; a key that is missing from the answer has spent nothing. */
export type UsageOf = (keyIds: readonly string[]) => Promise<ReadonlyMap<string, KeyUsage>>;

const NOTHING: Spent = { daily: 0n, weekly: 0n, monthly: 0n, lifetime: 0n };
export const NO_USAGE: KeyUsage = { usage: NOTHING, byok: NOTHING };
