/** What the ledger lets go of as it ages (yaml `retention`). */
import type { Log } from '../../base/log.ts';
import type { Database } from '../../storage/database.ts';
import { dropMonths, dropWindows } from './store.ts';

const DAY_MS = 86_400_000;
export const RETENTION_EVERY_MS = 3_600_000;
/** No operation looks further back at the counter of a day, week or month than into the one before the present one. */
const WINDOWS_KEPT_MS = 70 * DAY_MS;

/** @param retentionDays of the rows of generations; null keeps them for ever */
export async function letGo(database: Database, nowMs: number, retentionDays: number | null, log: Log): Promise<void> {
  await dropWindows(database, nowMs - WINDOWS_KEPT_MS);
  if (retentionDays === null) return;
  const months = await dropMonths(database, nowMs - retentionDays * DAY_MS);
  if (months.length > 0) log.info('rows of old months are let go', { months });
}
