/** The SQL that computes totals. */
import type { Database, Queryable } from '../../storage/database.ts';
import { INSERT_DAY, INSERT_HOUR } from './totals.sql.ts';

const HOUR_MS = 3_600_000;
/** Of one hour with many millions of rows. */
const TIMEOUT = '10min';
/** Only one process counts at a time, so that the last hour of a day sees that it is. */
const COUNT_LOCK = 0x636f756e;

/** Counts the newest hour that needs it and ended before `beforeMs` (wall time). Returns false if no hour is left. */
export function countHour(database: Pick<Database, 'transaction'>, beforeMs: number): Promise<boolean> {
  return database.transaction(async (tx) => {
    // Compiling hundreds of sums would take longer than adding up an hour.
    await tx.query(`select set_config('statement_timeout', '${TIMEOUT}', true), set_config('jit', 'off', true)`);
    await tx.query('select pg_advisory_xact_lock($1)', [COUNT_LOCK]);
    // Waits for transactions that have entered rows of the hour; the statements after it see them.
    const [counted] = await tx.query<{ hour: Date }>(
      `delete from generation_hours_to_count where hour = (
         select max(hour) from generation_hours_to_count where hour <= $1
       ) returning hour`,
      [new Date(beforeMs - HOUR_MS)],
    );
    if (counted === undefined) return false;
    await replace(tx, 'hour', counted.hour, INSERT_HOUR);
    const [day] = await tx.query<{ start: Date; whole: boolean }>(
      `select start, not exists (
           select 1 from generation_hours_to_count where hour >= start and hour < start + interval '24 hours'
         ) as whole
         from date_trunc('day', $1::timestamptz, 'UTC') start`,
      [counted.hour],
    );
    if (day?.whole) await replace(tx, 'day', day.start, INSERT_DAY);
    return true;
  });
}

/** Hours from `from` on and before `until` whose totals do not equal their rows, ascending. Times in ms. */
export async function hoursToCount(tx: Queryable, from: number, until: number): Promise<number[]> {
  const rows = await tx.query<{ hour: Date }>(
    'select hour from generation_hours_to_count where hour >= $1 and hour < $2 order by hour',
    [new Date(from), new Date(until)],
  );
  return rows.map(({ hour }) => hour.getTime());
}

async function replace(tx: Queryable, unit: 'hour' | 'day', at: Date, insert: string): Promise<void> {
  await tx.query(`delete from generation_totals where at = $1 and grain like '%' || $2`, [at, unit]);
  await tx.query(insert, [at]);
}
