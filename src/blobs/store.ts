/** The SQL of blobs. */
import type { Queryable } from '../storage/database.ts';

export interface StoredBlob {
  id: string;
  bytes: number;
  sha256: Buffer;
}

export async function insertBlob(db: Queryable, id: string, now: Date): Promise<void> {
  await db.query(`insert into blobs (id, state, created_at) values ($1, 'writing', $2)`, [id, now]);
}

export async function completeBlob(db: Queryable, { id, bytes, sha256 }: StoredBlob): Promise<void> {
  await db.query('update blobs set bytes = $2, sha256 = $3 where id = $1', [id, bytes, sha256]);
}

/** False: it was removed meanwhile, or is not complete. */
export async function keepBlob(tx: Queryable, id: string): Promise<boolean> {
  const sql = `update blobs set state = 'kept' where id = $1 and state = 'writing' and sha256 is not null returning id`;
  return (await tx.query(sql, [id])).length > 0;
}

export async function dropBlob(tx: Queryable, id: string): Promise<void> {
  await tx.query(`update blobs set state = 'dropped' where id = $1`, [id]);
}

/** Undefined for one that is not whole. */
export async function findBlob(db: Queryable, id: string): Promise<StoredBlob | undefined> {
  const sql = `select id, bytes::float8 as bytes, sha256 from blobs where id = $1 and sha256 is not null`;
  const [row] = await db.query<StoredBlob>(sql, [id]);
  return row;
}

/**
 * Blobs whose bytes can go: dropped ones, and ones that began before `abandonedBefore` and were never kept. Their rows
 * are locked, and passed over by other processes, until the transaction ends.
 */
export async function removableBlobs(tx: Queryable, abandonedBefore: Date, limit: number): Promise<string[]> {
  const rows = await tx.query<{ id: string }>(
    `select id from blobs where state = 'dropped' or (state = 'writing' and created_at < $1)
      order by created_at limit $2 for update skip locked`,
    [abandonedBefore, limit],
  );
  return rows.map(({ id }) => id);
}

export async function deleteBlobs(tx: Queryable, ids: readonly string[]): Promise<void> {
  await tx.query('delete from blobs where id = any($1::uuid[])', [ids]);
}
