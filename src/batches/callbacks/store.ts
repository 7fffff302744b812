/** The SQL of the callbacks of batches. */
import type { CallbackTable } from '../../callbacks/index.ts';
import type { Queryable } from '../../storage/database.ts';
import { TERMINAL_STATES } from '../batch.ts';

export const BATCH_CALLBACKS: CallbackTable = { name: 'batch_callbacks', key: 'batch_id' };

/** Ids of final batches whose callback is pending and that no job has tried since `before`. Marks them as seen `at`. */
export async function forgottenCallbacks(db: Queryable, before: Date, at: Date): Promise<string[]> {
  const rows = await db.query<{ id: string }>(
    `update batch_callbacks c set seen_at = $2 from batches b
      where c.status = 'pending' and c.seen_at < $1 and b.id = c.batch_id and b.state = any($3) and b.finalized_at < $1
      returning c.batch_id as id`,
    [before, at, TERMINAL_STATES],
  );
  return rows.map(({ id }) => id);
}
