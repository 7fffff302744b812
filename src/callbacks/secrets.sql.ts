/** The SQL of the secrets. Callers open the transactions; ids and times are made above. */
import { type Columns, insertRow, selectList } from '../storage/columns.ts';
import type { Queryable } from '../storage/database.ts';

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

/** The secrets of a workspace that sign at this time, the current one first. */
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

/** Locks the current secret for the transaction. */
export async function lockCurrentSecret(tx: Queryable, workspaceId: string): Promise<StoredSecret | undefined> {
  const [secret] = await tx.query<StoredSecret>(
    `select ${selectList(SECRET_COLUMNS, 's')} from batch_callback_secrets s
      where workspace_id = $1 and expires_at is null for update`,
    [workspaceId],
  );
  return secret;
}

/** The current secret signs until `previousExpiresAt`; the one before it is deleted. */
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

/** For `ended` of workspaces. */
export async function endCallbackSecrets(tx: Queryable, workspaceId: string): Promise<void> {
  await tx.query('delete from batch_callback_secrets where workspace_id = $1', [workspaceId]);
}
