/** The SQL of the chunks of files in vector stores. */
import type { Queryable } from '../storage/database.ts';
import type { Attributes } from './filters.ts';

export interface StoredChunk {
  sealed: Buffer;
  /** As a literal of `tsvector`. */
  terms: string;
}

const INSERTED_AT_ONCE = 500;

export async function insertChunks(tx: Queryable, entryId: string, chunks: readonly StoredChunk[]): Promise<void> {
  for (let first = 0; first < chunks.length; first += INSERTED_AT_ONCE) {
    const some = chunks.slice(first, first + INSERTED_AT_ONCE);
    await tx.query(
      `insert into vector_store_chunks (entry_id, position, sealed, terms)
       select $1, $2 + n - 1, sealed, terms::tsvector from unnest($3::bytea[], $4::text[]) with ordinality as c (sealed, terms, n)`,
      [entryId, first, some.map(({ sealed }) => sealed), some.map(({ terms }) => terms)],
    );
  }
}

/** In the order of the text. */
export function chunksOfEntry(
  db: Queryable,
  entryId: string,
  { first, limit }: { first: number; limit: number },
): Promise<{ position: number; sealed: Buffer }[]> {
  return db.query(
    `select position, sealed from vector_store_chunks where entry_id = $1 and position >= $2 order by position limit $3`,
    [entryId, first, limit],
  );
}

/** A completed file of a store that is searched. */
export interface SearchedEntry {
  id: string;
  fileId: string;
  filename: string;
  attributes: Attributes;
  chunks: number;
}

export function searchedEntries(db: Queryable, storeId: string, now: Date): Promise<SearchedEntry[]> {
  return db.query<SearchedEntry>(
    `select e.id, e.file_id as "fileId", f.filename, e.attributes, e.chunks
       from vector_store_files e join files f on f.id = e.file_id
      where e.store_id = $1 and e.status = 'completed' and (f.expires_at is null or f.expires_at > $2)`,
    [storeId, now],
  );
}

export async function vectorsOf(db: Queryable, entryIds: readonly string[]): Promise<Map<string, Buffer>> {
  const rows = await db.query<{ id: string; vectors: Buffer }>(
    'select id, vectors from vector_store_files where id = any($1::uuid[]) and vectors is not null',
    [entryIds],
  );
  return new Map(rows.map(({ id, vectors }) => [id, vectors]));
}

/** Of each term, the number of chunks of these files that have it. */
export async function countHolders(db: Queryable, terms: readonly string[]): Promise<ReadonlyMap<string, number>> {
  const rows = await db.query<{ term: string; count: number }>(
    `select term, (select count(*) from vector_store_chunks c where c.terms @@ term::tsquery)::int as count
       from unnest($1::text[]) as term`,
    [terms],
  );
  return new Map(rows.map(({ term, count }) => [term, count]));
}

interface KeywordMatch {
  entryId: string;
  position: number;
  /** How often the chunk has each of the terms. */
  counts: Readonly<Record<string, number>>;
}

/** The chunks that have at least one of the terms, best first. */
export function keywordMatches(
  db: Queryable,
  entryIds: readonly string[],
  terms: readonly string[],
  limit: number,
): Promise<KeywordMatch[]> {
  return db.query<KeywordMatch>(
    `select m.entry_id as "entryId", m.position,
            (select jsonb_object_agg(t.lexeme, cardinality(t.positions)) from unnest(m.terms) t where t.lexeme = any($2)) as counts
       from (select c.entry_id, c.position, c.terms from vector_store_chunks c
              where c.terms @@ $3::tsquery and c.entry_id = any($1::uuid[])
              order by ts_rank(c.terms, $3::tsquery) desc, c.entry_id, c.position limit $4) m`,
    [entryIds, terms, terms.join(' | '), limit],
  );
}

export async function textsOf(
  db: Queryable,
  places: readonly { entryId: string; position: number }[],
): Promise<{ entryId: string; position: number; sealed: Buffer }[]> {
  return db.query(
    `select c.entry_id as "entryId", c.position, c.sealed
       from vector_store_chunks c join unnest($1::uuid[], $2::int[]) as p (entry_id, position)
         on p.entry_id = c.entry_id and p.position = c.position`,
    [places.map(({ entryId }) => entryId), places.map(({ position }) => position)],
  );
}
