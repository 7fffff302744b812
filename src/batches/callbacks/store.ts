/** The SQL of callbacks and their secrets. Callers open the transactions; ids and times are made above. */
import { type Columns, insertRow, selectList } from '../../storage/columns.ts';
import type { Queryable } from '../../storage/database.ts';
import { TERMINAL_STATES } from '../batch.ts';

/** `delivered`: the receiver accepted the event. `stopped`: it answered with 410. `failed`: all attempts failed. */
export const CALLBACK_STATES = ['pending', 'delivered', 'stopped', 'failed'] as const;
type CallbackState = (typeof CALLBACK_STATES)[number];

export interface Callback {
  batchId: string;
  url: string;
  status: CallbackState;
  attempts: number;
  attemptedAt: Date | null;
  lastError: string | null;
  seenAt: Date;
}

const COLUMNS: Columns<Callback> = {
  batchId: 'batch_id',
  url: 'url',
  status: 'status',
  attempts: 'attempts',
  attemptedAt: 'attempted_at',
  lastError: 'last_error',
  seenAt: 'seen_at',
};

export async function insertCallback(tx: Queryable, callback: Callback): Promise<void> {
  await insertRow(tx, 'batch_callbacks', COLUMNS, callback);
}

export async function findCallback(db: Queryable, batchId: string): Promise<Callback | undefined> {
  const sql = `select ${selectList(COLUMNS, 'c')} from batch_callbacks c where batch_id = $1`;
  const [callback] = await db.query<Callback>(sql, [batchId]);
  return callback;
}

/** A callback that is no longer pending keeps its state. */
export async function recordAttempt(
  db: Queryable,
  batchId: string,
  { status, error, at }: { status: CallbackState; error: string | null; at: Date },
): Promise<void> {
  await db.query(
    `update batch_callbacks set status = $2, attempts = attempts + 1, attempted_at = $4, last_error = $3, seen_at = $4
      where batch_id = $1 and status = 'pending'`,
    [batchId, status, error, at],
  );
}

/** Pending ones of final batches that no job has tried since `before`. They count as seen `at`. */
export async function forgottenCallbacks(db: Queryable, before: Date, at: Date): Promise<string[]> {
  const rows = await db.query<{ id: string }>(
    `update batch_callbacks c set seen_at = $2 from batches b
      where c.status = 'pending' and c.seen_at < $1 and b.id = c.batch_id and b.state = any($3) and b.finalized_at < $1
      returning c.batch_id as id`,
    [before, at, TERMINAL_STATES],
  );
  return rows.map(({ id }) => id);
}

export interface StoredSecret {
  id: string;
  workspaceId: string;
  sealed: Buffer;
  createdAt: Date;
  expiresAt: Date | null;
}

const SECRET_COLUMNS: Columns<StoredSecret> = {
  id: 'id',
  workspaceId: 'workspace_id',
  sealed: 'sealed',
  createdAt: 'created_at',
  expiresAt: 'expires_at',
};

/** Those of a workspace that sign at this time, the current one first. */
export function validSecrets(db: Queryable, workspaceId: string, now: Date): Promise<StoredSecret[]> {
  return db.query<StoredSecret>(
    `select ${selectList(SECRET_COLUMNS, 's')} from batch_callback_secrets s
      where workspace_id = $1 and (expires_at is null or expires_at > $2) order by expires_at desc nulls first`,
    [workspaceId, now],
  );
}

/** False: the workspace has a current secret already. */
export async function insertFirstSecret(tx: Queryable, secret: StoredSecret): Promise<boolean> {
  const rows = await tx.query(
    `insert into batch_callback_secrets (id, workspace_id, sealed, created_at) values ($1, $2, $3, $4)
      on conflict (workspace_id) where expires_at is null do nothing returning id`,
    [secret.id, secret.workspaceId, secret.sealed, secret.createdAt],
  );
  return rows.length > 0;
}

/** The current one, kept for the transaction. */
export async function lockCurrentSecret(tx: Queryable, workspaceId: string): Promise<StoredSecret | undefined> {
  const [secret] = await tx.query<StoredSecret>(
    `select ${selectList(SECRET_COLUMNS, 's')} from batch_callback_secrets s
      where workspace_id = $1 and expires_at is null for update`,
    [workspaceId],
  );
  return secret;
}

/** The current one signs until `expiresAt`, the one before it no longer. */
export async function replaceSecret(tx: Queryable, secret: StoredSecret, previousExpiresAt: Date): Promise<void> {
  await tx.query('delete from batch_callback_secrets where workspace_id = $1 and expires_at is not null', [
    secret.workspaceId,
  ]);
  await tx.query('update batch_callback_secrets set expires_at = $2 where workspace_id = $1', [
    secret.workspaceId,
    previousExpiresAt,
  ]);
  await insertRow(tx, 'batch_callback_secrets', SECRET_COLUMNS, secret);
}

export async function deleteSecretsOf(tx: Queryable, workspaceId: string): Promise<void> {
  await tx.query('delete from batch_callback_secrets where workspace_id = $1', [workspaceId]);
}
