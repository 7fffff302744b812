/** Deletes old data from the ledger (yaml `retention`). */
import type { Log } from '../../base/log.ts';
import type { Database } from '../../storage/database.ts';
import { dropMonths, dropWindows } from './store.ts';

const DAY_MS = 86_400_000;
export const RETENTION_EVERY_MS = 3_600_000;
/** No operation reads a daily, weekly or monthly counter older than the previous window. */
const WINDOWS_KEPT_MS = 70 * DAY_MS;

/** @param retentionDays for generation rows; null keeps them for ever */
export async function letGo(database: Database, nowMs: number, retentionDays: number | null, log: Log): Promise<void> {
  await dropWindows(database, nowMs - WINDOWS_KEPT_MS);
  if (retentionDays === null) return;
  const months = await dropMonths(database, nowMs - retentionDays * DAY_MS);
  if (months.length > 0) log.info('dropped generations of old months', { months });
}
