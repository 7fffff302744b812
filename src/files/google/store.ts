/** The SQL of resumable uploads. Callers open the transactions; ids, times and hashes are made above. */
import { type Columns, insertRow, selectList } from '../../storage/columns.ts';
import type { Queryable } from '../../storage/database.ts';

export interface StoredUpload {
  id: string;
  tokenHash: string;
  organizationId: string;
  workspaceId: string;
  keyHash: string;
  filename: string;
  displayName: string | null;
  /** Null: the client did not say. */
  announcedBytes: number | null;
  receivedBytes: number;
  /** Null: unfinished. */
  fileId: string | null;
  createdAt: Date;
  expiresAt: Date;
}

interface StoredChunk {
  uploadId: string;
  start: number;
  bytes: number;
  blobId: string;
}

const COLUMNS: Columns<StoredUpload> = {
  id: 'id',
  tokenHash: 'token_hash',
  organizationId: 'organization_id',
  workspaceId: 'workspace_id',
  keyHash: 'key_hash',
  filename: 'filename',
  displayName: 'display_name',
  announcedBytes: { name: 'announced_bytes', read: 'float8' },
  receivedBytes: { name: 'received_bytes', read: 'float8' },
  fileId: 'file_id',
  createdAt: 'created_at',
  expiresAt: 'expires_at',
};

const CHUNK_COLUMNS: Columns<StoredChunk> = {
  uploadId: 'upload_id',
  start: { name: 'start', read: 'float8' },
  bytes: { name: 'bytes', read: 'float8' },
  blobId: 'blob_id',
};

const SELECT_UPLOADS = `select ${selectList(COLUMNS, 'file_uploads')} from file_uploads`;

export async function insertUpload(tx: Queryable, upload: StoredUpload): Promise<void> {
  await insertRow(tx, 'file_uploads', COLUMNS, upload);
}

/** Undefined also if the upload has expired. */
export async function findUpload(db: Queryable, tokenHash: string, now: Date): Promise<StoredUpload | undefined> {
  const sql = `${SELECT_UPLOADS} where token_hash = $1 and expires_at > $2`;
  const [upload] = await db.query<StoredUpload>(sql, [tokenHash, now]);
  return upload;
}

/** Keeps the row for the transaction. */
export async function lockUpload(tx: Queryable, id: string): Promise<StoredUpload | undefined> {
  const [upload] = await tx.query<StoredUpload>(`${SELECT_UPLOADS} where id = $1 for update`, [id]);
  return upload;
}

/** Of the workspace: how many uploads are unfinished, and the bytes that have arrived of them. */
export async function unfinishedIn(tx: Queryable, workspaceId: string): Promise<{ count: number; bytes: number }> {
  const sql = `select count(*)::float8 as count, coalesce(sum(received_bytes), 0)::float8 as bytes from file_uploads
    where workspace_id = $1 and file_id is null`;
  const [row] = await tx.query<{ count: number; bytes: number }>(sql, [workspaceId]);
  return row!;
}

/** In the order of the file. */
export function chunksOf(db: Queryable, uploadId: string): Promise<StoredChunk[]> {
  const sql = `select ${selectList(CHUNK_COLUMNS, 'c')} from file_upload_chunks c where upload_id = $1 order by c.start`;
  return db.query<StoredChunk>(sql, [uploadId]);
}

export async function addChunk(tx: Queryable, chunk: StoredChunk): Promise<void> {
  await insertRow(tx, 'file_upload_chunks', CHUNK_COLUMNS, chunk);
  const sql = 'update file_uploads set received_bytes = received_bytes + $2 where id = $1';
  await tx.query(sql, [chunk.uploadId, chunk.bytes]);
}

/** @returns the blobs of the chunks, which nothing needs any more */
export async function finishUpload(
  tx: Queryable,
  { id, fileId, bytes }: { id: string; fileId: string; bytes: number },
): Promise<string[]> {
  await tx.query('update file_uploads set file_id = $2, received_bytes = $3 where id = $1', [id, fileId, bytes]);
  return deleteChunks(tx, [id]);
}

/** @returns the blobs of the chunks */
export async function deleteUploads(tx: Queryable, ids: readonly string[]): Promise<string[]> {
  const blobs = await deleteChunks(tx, ids);
  await tx.query('delete from file_uploads where id = any($1::uuid[])', [ids]);
  return blobs;
}

/** Ids of uploads that have expired by `now`, locked; those that another transaction has locked are left out. */
export async function lockExpiredUploads(tx: Queryable, now: Date, limit: number): Promise<string[]> {
  const sql = 'select id from file_uploads where expires_at <= $1 order by expires_at limit $2 for update skip locked';
  return (await tx.query<{ id: string }>(sql, [now, limit])).map(({ id }) => id);
}

/** Locks them. */
export async function uploadsOf(tx: Queryable, workspaceId: string): Promise<string[]> {
  const sql = 'select id from file_uploads where workspace_id = $1 for update';
  return (await tx.query<{ id: string }>(sql, [workspaceId])).map(({ id }) => id);
}

async function deleteChunks(tx: Queryable, uploadIds: readonly string[]): Promise<string[]> {
  const sql = 'delete from file_upload_chunks where upload_id = any($1::uuid[]) returning blob_id as "blobId"';
  return (await tx.query<{ blobId: string }>(sql, [uploadIds])).map(({ blobId }) => blobId);
}
