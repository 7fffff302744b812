/** The SQL of vectors of files that are being added. */
import type { Queryable } from '../storage/database.ts';

interface StoredPiece {
  /** Position of the first chunk. */
  first: number;
  sealed: Buffer;
}

export async function piecesOf(db: Queryable, entryId: string): Promise<Map<number, Buffer>> {
  const rows = await db.query<StoredPiece>('select first, sealed from vector_store_pieces where entry_id = $1', [
    entryId,
  ]);
  return new Map(rows.map(({ first, sealed }) => [first, sealed]));
}

/** Only while the file waits. Replaces a piece that does not fit any more. */
export async function keepPiece(db: Queryable, entryId: string, { first, sealed }: StoredPiece): Promise<void> {
  await db.query(
    `insert into vector_store_pieces (entry_id, first, sealed)
     select id, $2, $3 from vector_store_files where id = $1 and status = 'in_progress'
     on conflict (entry_id, first) do update set sealed = excluded.sealed`,
    [entryId, first, sealed],
  );
}

export async function deletePieces(tx: Queryable, entryId: string): Promise<void> {
  await tx.query('delete from vector_store_pieces where entry_id = $1', [entryId]);
}

/** Of files that nothing is added to any more. */
export async function deleteLeftPieces(db: Queryable): Promise<void> {
  await db.query(
    `delete from vector_store_pieces p using vector_store_files e where e.id = p.entry_id and e.status <> 'in_progress'`,
  );
}
