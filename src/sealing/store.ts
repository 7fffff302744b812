/** The SQL of sealing. */
import type { Queryable } from '../storage/database.ts';

/** A text of ours under the installation's key; undefined while nothing has ever been sealed. */
export async function readCanary(db: Queryable): Promise<Buffer | undefined> {
  const [row] = await db.query<{ sealed: Buffer }>('select sealed from sealing_canary');
  return row?.sealed;
}

export async function insertCanary(tx: Queryable, sealed: Buffer): Promise<void> {
  await tx.query('insert into sealing_canary (id, sealed) values (1, $1)', [sealed]);
}

/** Until the transaction ends nobody else makes a key; reading goes on. */
export async function lockKeys(tx: Queryable): Promise<void> {
  await tx.query('lock table sealing_canary in share row exclusive mode');
}

export interface WrappedKey {
  version: number;
  wrapped: Buffer;
}

/** The newest one last. */
export async function dataKeys(db: Queryable, purpose: string): Promise<WrappedKey[]> {
  return db.query('select version, wrapped from sealing_keys where purpose = $1 order by version', [purpose]);
}

export async function insertDataKey(
  tx: Queryable,
  purpose: string,
  { version, wrapped }: WrappedKey,
  createdAt: Date,
): Promise<void> {
  const sql = 'insert into sealing_keys (purpose, version, wrapped, created_at) values ($1, $2, $3, $4)';
  await tx.query(sql, [purpose, version, wrapped, createdAt]);
}
