/** The SQL of the events of background responses. */
import type { Queryable } from '../../storage/database.ts';

/** Several events, encrypted together. */
export interface EventRow {
  first: number;
  last: number;
  sealed: Buffer;
}

/**
 * Does nothing if the response was deleted. Replaces the events that begin with the same one: they are a part of these, written
 * before in a transaction whose commit was not answered.
 */
export async function insertEvents(tx: Queryable, responseId: string, row: EventRow): Promise<void> {
  await tx.query(
    `insert into response_events (response_id, first, last, sealed)
      select id, $2, $3, $4 from responses where id = $1 for key share
      on conflict (response_id, first) do update set last = excluded.last, sealed = excluded.sealed`,
    [responseId, row.first, row.last, row.sealed],
  );
}

/** Those with the highest numbers. */
export async function lastEvents(db: Queryable, responseId: string): Promise<EventRow | undefined> {
  const [row] = await db.query<EventRow>(
    'select first, last, sealed from response_events where response_id = $1 order by first desc limit 1',
    [responseId],
  );
  return row;
}

/** Those with events after a sequence number, in order; up to `limit` rows. */
export function eventsAfter(db: Queryable, responseId: string, after: number, limit: number): Promise<EventRow[]> {
  return db.query<EventRow>(
    'select first, last, sealed from response_events where response_id = $1 and last > $2 order by first limit $3',
    [responseId, after, limit],
  );
}
