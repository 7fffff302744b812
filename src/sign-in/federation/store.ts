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

const SEALED_OTHERWISE = 'substring(sealed from 1 for length($1::bytea)) <> $1::bytea';

/** `SealedRows.outdated` */
export async function holdSealedOtherwise(
  tx: Queryable,
  header: Buffer,
  after: string | null,
  limit: number,
): Promise<{ id: string; sealed: Buffer }[]> {
  return tx.query(
    `select id, sealed from federation_keys where ${SEALED_OTHERWISE} and ($2::text is null or id > $2)
      order by id limit $3 for no key update skip locked`,
    [header, after, limit],
  );
}

export async function countSealedOtherwise(db: Queryable, header: Buffer): Promise<number> {
  const sql = `select count(*)::int as total from federation_keys where ${SEALED_OTHERWISE}`;
  return (await db.query<{ total: number }>(sql, [header]))[0]!.total;
}

export async function replaceRecord(tx: Queryable, id: string, sealed: Buffer): Promise<void> {
  await tx.query('update federation_keys set sealed = $2 where id = $1', [id, sealed]);
}
