/** The SQL of callbacks, for the table of each kind. Callers open the transactions; ids and times are made above. */
import { type Columns, insertRow, selectList } from '../storage/columns.ts';
import type { Queryable } from '../storage/database.ts';

/** `delivered`: the receiver accepted the event. `stopped`: it answered with 410. `failed`: all attempts failed. */
export const CALLBACK_STATES = ['pending', 'delivered', 'stopped', 'failed'] as const;
type CallbackState = (typeof CALLBACK_STATES)[number];

export interface Callback {
  /** The stored id of the batch or video. */
  subjectId: string;
  url: string;
  status: CallbackState;
  attempts: number;
  attemptedAt: Date | null;
  lastError: string | null;
  /** When a job was last sent for it. */
  seenAt: Date;
}

/** A table with the members of `Callback`. */
export interface CallbackTable {
  readonly name: string;
  /** The column of `subjectId`. */
  readonly key: string;
}

function columnsOf({ key }: CallbackTable): Columns<Callback> {
  return {
    subjectId: key,
    url: 'url',
    status: 'status',
    attempts: 'attempts',
    attemptedAt: 'attempted_at',
    lastError: 'last_error',
    seenAt: 'seen_at',
  };
}

export async function insertCallback(
  tx: Queryable,
  table: CallbackTable,
  { subjectId, url, createdAt }: { subjectId: string; url: string; createdAt: Date },
): Promise<void> {
  const rest = { status: 'pending', attempts: 0, attemptedAt: null, lastError: null, seenAt: createdAt };
  await insertRow(tx, table.name, columnsOf(table), { subjectId, url, ...rest });
}

export async function findCallback(db: Queryable, table: CallbackTable, id: string): Promise<Callback | undefined> {
  const sql = `select ${selectList(columnsOf(table), 'c')} from ${table.name} c where ${table.key} = $1`;
  const [callback] = await db.query<Callback>(sql, [id]);
  return callback;
}

/** A callback that is no longer pending keeps its state. */
export async function recordAttempt(
  db: Queryable,
  table: CallbackTable,
  id: string,
  { status, error, at }: { status: CallbackState; error: string | null; at: Date },
): Promise<void> {
  await db.query(
    `update ${table.name} set status = $2, attempts = attempts + 1, attempted_at = $4, last_error = $3, seen_at = $4
      where ${table.key} = $1 and status = 'pending'`,
    [id, status, error, at],
  );
}
