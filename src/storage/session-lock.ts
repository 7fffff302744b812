/** A lock that one connection at a time holds, over all processes on a database. */
import type pg from 'pg';

/** Waits for the lock; closing the connection gives it up. @param number one that nothing else takes advisory locks with */
export async function lockSession(client: pg.Client, number: number): Promise<void> {
  await client.query('select pg_advisory_lock($1)', [number]);
}
