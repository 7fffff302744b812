/** The SQL of the signing keys of access tokens. */
import type { Queryable } from '../../storage/database.ts';

export interface StoredSigningKey {
  id: string;
  sealed: Buffer;
  createdAt: Date;
  /** null for the key that signs new tokens. */
  retiredAt: Date | null;
}

/** Newest first. */
export async function signingKeys(db: Queryable): Promise<StoredSigningKey[]> {
  return db.query<StoredSigningKey>(
    `select id, sealed, created_at as "createdAt", retired_at as "retiredAt" from federation_keys
      order by retired_at desc nulls first`,
  );
}

/** Locks out other writers of signing keys until the transaction ends; readers continue. */
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

/** Deletes keys whose last tokens have expired. */
export async function deleteRetiredBefore(tx: Queryable, moment: Date): Promise<void> {
  await tx.query('delete from federation_keys where retired_at <= $1', [moment]);
}
