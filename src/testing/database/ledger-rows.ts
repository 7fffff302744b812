/** Rows of the ledger as if requests had been settled. */
import { silentLog } from '../../base/log.ts';
import type { Generation } from '../../spend/index.ts';
import { enterBatch } from '../../spend/ledger.ts';
import { encodeRow } from '../../spend/row.ts';
import { countHour } from '../../spend/totals/store.ts';
import type { Database } from '../../storage/database.ts';

/** For tests that enter millions of rows by SQL. */
export { DAY_COLUMNS, DAY_KEYS, DAY_SUMS } from '../../spend/days.sql.ts';

export async function enterRows(database: Database, rows: readonly Generation[]): Promise<void> {
  const entries = rows.map((row) => ({ id: row.id, row: encodeRow(row), taken: [] }));
  await enterBatch(database, 'process of the test', entries, silentLog);
}

/** Computes the totals of every hour that ended before `beforeMs`, as the job does. */
export async function countTotals(database: Pick<Database, 'transaction'>, beforeMs = FAR_MS): Promise<void> {
  while (await countHour(database, beforeMs));
}

const FAR_MS = Date.UTC(2100, 0, 1);
