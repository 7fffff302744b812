/** The SQL of blobs. */
import type { Queryable } from '../storage/database.ts';
import type { BackendKind } from './backend.ts';

export interface RemovableBlob {
  id: string;
  backend: BackendKind;
}

interface StoredBlob {
  id: string;
  bytes: number;
  sha256: Buffer;
}

export async function insertBlob(db: Queryable, id: string, backend: BackendKind, now: Date): Promise<void> {
  const sql = `insert into blobs (id, state, backend, created_at) values ($1, 'writing', $2, $3)`;
  await db.query(sql, [id, backend, now]);
}

/** False: its row is gone. */
export async function completeBlob(db: Queryable, { id, bytes, sha256 }: StoredBlob): Promise<boolean> {
  const sql = 'update blobs set bytes = $2, sha256 = $3 where id = $1 returning id';
  return (await db.query(sql, [id, bytes, sha256])).length > 0;
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
export async function findBlob(db: Queryable, id: string): Promise<(StoredBlob & RemovableBlob) | undefined> {
  const sql = `select id, backend, bytes::float8 as bytes, sha256 from blobs where id = $1 and sha256 is not null`;
  const [row] = await db.query<StoredBlob & RemovableBlob>(sql, [id]);
  return row;
}

/**
 * Blobs of these backends whose bytes can go: dropped ones, ones whose write failed before `settledBefore`, and ones that
 * began before `abandonedBefore` and were never kept. Their rows are locked, and passed over by other processes, until
 * the transaction ends.
 */
export function removableBlobs(
  tx: Queryable,
  of: { kinds: readonly BackendKind[]; abandonedBefore: Date; settledBefore: Date; limit: number },
): Promise<RemovableBlob[]> {
  return tx.query<RemovableBlob>(
    `select id, backend from blobs
      where backend = any($1::text[]) and (
        state = 'dropped' and (sha256 is not null or created_at < $2)
        or state = 'writing' and created_at < $3)
      order by created_at limit $4 for update skip locked`,
    [of.kinds, of.settledBefore, of.abandonedBefore, of.limit],
  );
}

/** Number of blobs, and of their bytes, in each backend. */
export function countBlobs(db: Queryable): Promise<{ backend: BackendKind; count: number; bytes: number }[]> {
  return db.query(
    `select backend, count(*)::float8 as count, coalesce(sum(bytes), 0)::float8 as bytes from blobs
      where state = 'kept' group by backend order by backend`,
  );
}

export async function deleteBlobs(tx: Queryable, ids: readonly string[]): Promise<void> {
  await tx.query('delete from blobs where id = any($1::uuid[])', [ids]);
}
