/**
 * Housekeeping of the ledger's tables: deletes old data (yaml `retention`) and completes the daily totals. No amount of
 * money depends on it, so it may run late or never: the ledger itself creates the month that a row needs (`ledger.ts`),
 * and leases, journals and dead processes are the business of each process (`Spending`).
 */
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { JobKind } from '../../jobs/index.ts';
import type { Database } from '../../storage/database.ts';
import { sumLateRows } from '../days.sql.ts';
import { dropPartitions, dropWindows } from './store.ts';

const DAY_MS = 86_400_000;
const TIDY_MS = 3_600_000;
/** No operation reads a daily, weekly or monthly counter older than the previous window. */
const WINDOWS_KEPT_MS = 70 * DAY_MS;

interface TidyParts {
  database: Database;
  clock: Clock;
  log: Log;
  /** Generation rows are kept for at least this many days and at most a month longer; null keeps them for ever. */
  retentionDays(): number | null;
}

/** Runs at start too: a process of an earlier version may have entered rows without their daily totals. */
export function tidyLedgerJob({ database, clock, log, retentionDays }: TidyParts): JobKind {
  return {
    name: 'spend.tidy',
    runs: 'one',
    retries: 0,
    everyMs: TIDY_MS,
    atStart: true,
    async run() {
      await sumLateRows(database);
      await dropOldRows(database, clock.now(), retentionDays(), log);
    },
  };
}

/** @param retentionDays for generation rows; null keeps them for ever */
export async function dropOldRows(
  database: Database,
  nowMs: number,
  retentionDays: number | null,
  log: Log,
): Promise<void> {
  await dropWindows(database, nowMs - WINDOWS_KEPT_MS);
  if (retentionDays === null) return;
  const months = await dropPartitions(database, nowMs - retentionDays * DAY_MS);
  if (months.length > 0) log.info('dropped generations of old months', { months });
}
