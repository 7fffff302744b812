/** The SQL of the keys that access tokens are signed with. */
import type { Queryable } from '../../storage/database.ts';

export interface StoredSigningKey {
  id: string;
  sealed: Buffer;
  createdAt: Date;
  /** null: new tokens are signed with it. */
  retiredAt: Date | null;
}

/** The newest one first. */
export async function signingKeys(db: Queryable): Promise<StoredSigningKey[]> {
  return db.query<StoredSigningKey>(
    `select id, sealed, created_at as "createdAt", retired_at as "retiredAt" from federation_keys
      order by retired_at desc nulls first`,
  );
}

/** Until the transaction ends nobody else makes a key; reading goes on. */
export async function lockSigningKeys(tx: Queryable): Promise<void> {
  await tx.query('lock table federation_keys in share row exclusive mode');
}

export async function insertSigningKey(
  tx: Queryable,
  { id, sealed, createdAt }: Omit<StoredSigningKey, 'retiredAt'>,
): Promise<void> {
  await tx.query('insert into federation_keys (id, sealed, created_at) values ($1, $2, $3)', [id, sealed, createdAt]);
}

export async function retireSigningKey(tx: Queryable, retiredAt: Date): Promise<void> {
  await tx.query('update federation_keys set retired_at = $1 where retired_at is null', [retiredAt]);
}

/** Those whose last tokens have ended. */
export async function deleteRetiredBefore(tx: Queryable, moment: Date): Promise<void> {
  await tx.query('delete from federation_keys where retired_at <= $1', [moment]);
}
