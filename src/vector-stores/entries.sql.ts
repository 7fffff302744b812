/** The SQL of files in vector stores, and of the batches in which they were added. */
import { type Columns, insertRow, pick, selectList } from '../storage/columns.ts';
import type { Queryable } from '../storage/database.ts';
import type { Attributes } from './filters.ts';
import { type ListPage, pageSql, pageValues } from './store.ts';

type EntryStatus = 'in_progress' | 'completed' | 'failed' | 'cancelled';

/** A file in a store. */
export interface Entry {
  id: string;
  storeId: string;
  fileId: string;
  batchId: string | null;
  keyHash: string;
  status: EntryStatus;
  errorCode: string | null;
  errorMessage: string | null;
  attributes: Attributes;
  chunkTokens: number;
  overlapTokens: number;
  chunks: number;
  bytes: number;
  createdAt: Date;
}

const COLUMNS: Columns<Entry> = {
  id: 'id',
  storeId: 'store_id',
  fileId: 'file_id',
  batchId: 'batch_id',
  keyHash: 'key_hash',
  status: 'status',
  errorCode: 'error_code',
  errorMessage: 'error_message',
  attributes: { name: 'attributes', type: 'jsonb' },
  chunkTokens: 'chunk_tokens',
  overlapTokens: 'overlap_tokens',
  chunks: 'chunks',
  bytes: 'bytes',
  createdAt: 'created_at',
};

const ENTRIES = `select ${selectList(COLUMNS, 'e')} from vector_store_files e`;

/** A file that is added; the rest follows. */
type NewEntry = Pick<
  Entry,
  'id' | 'storeId' | 'fileId' | 'batchId' | 'keyHash' | 'attributes' | 'chunkTokens' | 'overlapTokens' | 'createdAt'
>;

const NEW = [
  ...(['id', 'storeId', 'fileId', 'batchId', 'keyHash', 'attributes'] as const),
  ...(['chunkTokens', 'overlapTokens', 'createdAt', 'status'] as const),
];

/** Adds the file in place of an earlier one with the same id. */
export async function insertEntry(tx: Queryable, entry: NewEntry): Promise<Entry> {
  await tx.query('delete from vector_store_files where store_id = $1 and file_id = $2', [entry.storeId, entry.fileId]);
  await insertRow(tx, 'vector_store_files', pick(COLUMNS, NEW), { ...entry, status: 'in_progress' });
  return (await entryOf(tx, entry.storeId, entry.fileId))!;
}

export async function countEntries(tx: Queryable, storeId: string): Promise<number> {
  const sql = 'select count(*)::int as count from vector_store_files where store_id = $1';
  return (await tx.query<{ count: number }>(sql, [storeId]))[0]!.count;
}

export async function entryOf(db: Queryable, storeId: string, fileId: string): Promise<Entry | undefined> {
  const [entry] = await db.query<Entry>(`${ENTRIES} where e.store_id = $1 and e.file_id = $2`, [storeId, fileId]);
  return entry;
}

interface EntryPage extends ListPage {
  batchId: string | undefined;
  status: EntryStatus | undefined;
}

export function listEntries(db: Queryable, storeId: string, page: EntryPage): Promise<Entry[]> {
  return db.query<Entry>(
    `${ENTRIES} where e.store_id = $1 and ($2::uuid is null or e.batch_id = $2) and ($3::text is null or e.status = $3)
       and ${pageSql('e', page, 4)}`,
    [storeId, page.batchId ?? null, page.status ?? null, ...pageValues(page)],
  );
}

export async function setAttributes(tx: Queryable, id: string, attributes: Attributes): Promise<void> {
  await tx.query('update vector_store_files set attributes = $2::jsonb where id = $1', [
    id,
    JSON.stringify(attributes),
  ]);
}

export async function deleteEntry(tx: Queryable, id: string): Promise<void> {
  await tx.query('delete from vector_store_files where id = $1', [id]);
}

/** What the job that adds a file works with. */
export interface WaitingEntry extends Entry {
  workspaceId: string;
  embeddingModel: string | null;
  dataKey: Buffer;
}

export async function waitingEntry(db: Queryable, id: string): Promise<WaitingEntry | undefined> {
  const [entry] = await db.query<WaitingEntry>(
    `select ${selectList(COLUMNS, 'e')}, s.workspace_id as "workspaceId", s.embedding_model as "embeddingModel",
            s.data_key as "dataKey"
       from vector_store_files e join vector_stores s on s.id = e.store_id where e.id = $1 and e.status = 'in_progress'`,
    [id],
  );
  return entry;
}

/** Holds the store and the file; false if it no longer waits. */
export async function lockWaiting(tx: Queryable, { id, storeId }: Pick<Entry, 'id' | 'storeId'>): Promise<boolean> {
  await tx.query('select 1 from vector_stores where id = $1 for no key update', [storeId]);
  const sql = "select 1 from vector_store_files where id = $1 and status = 'in_progress' for no key update";
  return (await tx.query(sql, [id])).length > 0;
}

export async function chunksInStore(tx: Queryable, storeId: string): Promise<number> {
  const sql = 'select coalesce(sum(chunks), 0)::int as count from vector_store_files where store_id = $1';
  return (await tx.query<{ count: number }>(sql, [storeId]))[0]!.count;
}

export async function completeEntry(
  tx: Queryable,
  { id, chunks, bytes, vectors }: { id: string; chunks: number; bytes: number; vectors: Buffer | null },
): Promise<void> {
  await tx.query(
    `update vector_store_files set status = 'completed', chunks = $2, bytes = $3, vectors = $4 where id = $1`,
    [id, chunks, bytes, vectors],
  );
}

/** Only if it still waits. */
export async function failEntry(db: Queryable, id: string, code: string, message: string): Promise<void> {
  await db.query(
    `update vector_store_files set status = 'failed', error_code = $2, error_message = $3
      where id = $1 and status = 'in_progress'`,
    [id, code, message],
  );
}

/** Files that no job will add any more, such as after a restored backup. */
export async function failForgotten(db: Queryable, before: Date, message: string): Promise<void> {
  await db.query(
    `update vector_store_files set status = 'failed', error_code = 'server_error', error_message = $2
      where status = 'in_progress' and created_at < $1`,
    [before, message],
  );
}

export interface Batch {
  id: string;
  storeId: string;
  createdAt: Date;
  cancelledAt: Date | null;
  inProgress: number;
  completed: number;
  failed: number;
  cancelled: number;
}

export async function insertBatch(tx: Queryable, batch: Pick<Batch, 'id' | 'storeId' | 'createdAt'>): Promise<void> {
  await tx.query('insert into vector_store_batches (id, store_id, created_at) values ($1, $2, $3)', [
    batch.id,
    batch.storeId,
    batch.createdAt,
  ]);
}

export async function batchOf(db: Queryable, storeId: string, id: string): Promise<Batch | undefined> {
  const [batch] = await db.query<Batch>(
    `select b.id, b.store_id as "storeId", b.created_at as "createdAt", b.cancelled_at as "cancelledAt",
            count(*) filter (where e.status = 'in_progress')::int as "inProgress",
            count(*) filter (where e.status = 'completed')::int as completed,
            count(*) filter (where e.status = 'failed')::int as failed,
            count(*) filter (where e.status = 'cancelled')::int as cancelled
       from vector_store_batches b left join vector_store_files e on e.batch_id = b.id
      where b.store_id = $1 and b.id = $2 group by b.id`,
    [storeId, id],
  );
  return batch;
}

/** Files that are added already stay. */
export async function cancelBatch(tx: Queryable, id: string, now: Date): Promise<void> {
  await tx.query('update vector_store_batches set cancelled_at = coalesce(cancelled_at, $2) where id = $1', [id, now]);
  const sql = `update vector_store_files set status = 'cancelled' where batch_id = $1 and status = 'in_progress'`;
  await tx.query(sql, [id]);
}
