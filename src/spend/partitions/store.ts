/** The monthly partitions of `generations`: created with their first row, dropped as a whole. */
import type { Database, Queryable } from '../../storage/database.ts';
import { dropDays } from '../days.sql.ts';

const PREFIX = 'generations_';
/** Only one process at a time creates or drops partitions. */
const MONTHS_LOCK = 0x6d6f6e74;

/** True for the error of a row without a partition. Checks the routine, because the message may be in any language. */
export function isPartitionMissing(error: unknown): boolean {
  return (error as { routine?: unknown }).routine === 'ExecFindPartition';
}

/** @param months as `2026-11` */
export async function addPartitions(database: Database, months: Iterable<string>): Promise<void> {
  await database.transaction(async (tx) => {
    await tx.query('select pg_advisory_xact_lock($1)', [MONTHS_LOCK]);
    for (const month of months) {
      const from = monthStart(month);
      await tx.query(
        `create table if not exists ${PREFIX}${month.replace('-', '_')} partition of generations
         for values from ('${timeText(from)}') to ('${timeText(nextMonth(from))}')`,
      );
    }
  });
}

/**
 * Drops the months that ended before `beforeMs` (wall time), with their daily totals; counters stay. Waits at most two
 * seconds for running statements: a table in use is dropped in a later call.
 * @returns the dropped months
 */
export async function dropPartitions(database: Database, beforeMs: number): Promise<string[]> {
  const rows = await database.query<{ name: string }>(
    `select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
     where i.inhparent = 'generations'::regclass order by c.relname`,
  );
  const dropped: string[] = [];
  for (const { name } of rows) {
    const month = /^generations_(\d{4})_(\d{2})$/.exec(name);
    if (month === null) continue;
    const label = `${month[1]}-${month[2]}`;
    if (nextMonth(monthStart(label)).getTime() > beforeMs) continue;
    await database.transaction((tx) => dropMonth(tx, name, monthStart(label)));
    dropped.push(label);
  }
  return dropped;
}

/** Deletes daily, weekly and monthly counters that began before `beforeMs` and have no leases. */
export async function dropWindows(database: Database, beforeMs: number): Promise<void> {
  await database.query(
    `delete from spend_windows where leased_nano = 0 and split_part(id, '/', 3) <> 'lifetime'
       and split_part(id, '/', 4)::bigint < $1`,
    [beforeMs],
  );
}

async function dropMonth(tx: Queryable, table: string, start: Date): Promise<void> {
  await tx.query(`set local lock_timeout = '2s'`);
  await tx.query('select pg_advisory_xact_lock($1)', [MONTHS_LOCK]);
  await tx.query(`drop table if exists ${table}`);
  await dropDays(tx, start, nextMonth(start));
}

function monthStart(month: string): Date {
  const start = new Date(`${month}-01T00:00:00Z`);
  if (!/^\d{4}-\d{2}$/.test(month) || Number.isNaN(start.getTime())) throw new RangeError('not a month');
  return start;
}

function nextMonth(start: Date): Date {
  return new Date(Date.UTC(start.getUTCFullYear(), start.getUTCMonth() + 1, 1));
}

function timeText(time: Date): string {
  return `${time.toISOString().slice(0, 10)} 00:00:00+00`;
}
