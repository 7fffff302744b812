/** The SQL of files. Callers open the transactions; ids and times are made above. */
import { type Columns, insertRow, selectList } from '../storage/columns.ts';
import type { Queryable } from '../storage/database.ts';

export interface StoredFile {
  id: string;
  organizationId: string;
  workspaceId: string;
  filename: string;
  /** What its client calls it, where that is no filename; null: the filename. */
  displayName: string | null;
  mimeType: string;
  bytes: number;
  blobId: string;
  purpose: string;
  downloadable: boolean;
  createdAt: Date;
  /** From then on the file is gone for clients; a job removes it. */
  expiresAt: Date | null;
}

const COLUMNS: Columns<StoredFile> = {
  id: 'id',
  organizationId: 'organization_id',
  workspaceId: 'workspace_id',
  filename: 'filename',
  displayName: 'display_name',
  mimeType: 'mime_type',
  bytes: { name: 'bytes', read: 'float8' },
  blobId: 'blob_id',
  purpose: 'purpose',
  downloadable: 'downloadable',
  createdAt: 'created_at',
  expiresAt: 'expires_at',
};

const SELECT_FILES = `select ${selectList(COLUMNS, 'files')} from files`;

/** Holds the workspace, so that two uploads at once cannot pass its limit together. Returns the bytes it has. */
export async function lockBytesOf(tx: Queryable, workspaceId: string): Promise<number> {
  await tx.query('select 1 from workspaces where id = $1 for no key update', [workspaceId]);
  return bytesOf(tx, workspaceId);
}

export async function bytesOf(db: Queryable, workspaceId: string): Promise<number> {
  const sql = 'select coalesce(sum(bytes), 0)::float8 as bytes from files where workspace_id = $1';
  const [row] = await db.query<{ bytes: number }>(sql, [workspaceId]);
  return row?.bytes ?? 0;
}

export async function insertFile(tx: Queryable, file: StoredFile): Promise<void> {
  await insertRow(tx, 'files', COLUMNS, file);
}

interface FilePage {
  /** Undefined: all. */
  ids: readonly string[] | undefined;
  /** An id; the page begins with the next one. */
  after: string | undefined;
  limit: number;
  purpose: string | undefined;
  /** What has expired by then is left out. */
  now: Date;
}

/** Oldest first. */
export function listFiles(
  db: Queryable,
  workspaceId: string,
  { ids, after, limit, purpose, now }: FilePage,
): Promise<StoredFile[]> {
  return db.query<StoredFile>(
    `${SELECT_FILES} where workspace_id = $1 and ($2::uuid is null or id > $2) and ($3::text is null or purpose = $3)
      and (expires_at is null or expires_at > $4) and ($6::uuid[] is null or id = any($6)) order by id limit $5`,
    [workspaceId, after ?? null, purpose ?? null, now, limit, ids ?? null],
  );
}

/** The newest ones, oldest first. */
export async function newestFiles(db: Queryable, workspaceId: string, now: Date, limit: number): Promise<StoredFile[]> {
  const sql = `${SELECT_FILES} where workspace_id = $1 and (expires_at is null or expires_at > $2) order by id desc limit $3`;
  return (await db.query<StoredFile>(sql, [workspaceId, now, limit])).reverse();
}

/** The newest one with this name. */
export async function findNamed(
  db: Queryable,
  workspaceId: string,
  filename: string,
  now: Date,
): Promise<StoredFile | undefined> {
  const sql = `${SELECT_FILES} where workspace_id = $1 and filename = $2 and (expires_at is null or expires_at > $3)
    order by id desc limit 1`;
  const [file] = await db.query<StoredFile>(sql, [workspaceId, filename, now]);
  return file;
}

/** Undefined also if the file has expired. */
export async function findFile(
  db: Queryable,
  workspaceId: string,
  id: string,
  now: Date,
): Promise<StoredFile | undefined> {
  const sql = `${SELECT_FILES} where workspace_id = $1 and id = $2 and (expires_at is null or expires_at > $3)`;
  const [file] = await db.query<StoredFile>(sql, [workspaceId, id, now]);
  return file;
}

/** Keeps the row for the transaction. */
export async function lockFile(tx: Queryable, id: string): Promise<StoredFile | undefined> {
  const [file] = await tx.query<StoredFile>(`${SELECT_FILES} where id = $1 for update`, [id]);
  return file;
}

/** Locks files that have expired by `now`; files that another transaction has locked are left out. */
export function lockExpiredFiles(tx: Queryable, now: Date, limit: number): Promise<StoredFile[]> {
  const sql = `${SELECT_FILES} where expires_at <= $1 order by expires_at limit $2 for update skip locked`;
  return tx.query<StoredFile>(sql, [now, limit]);
}

/** In no order; those that do not exist in the workspace are left out. */
export function findFiles(
  db: Queryable,
  workspaceId: string,
  ids: readonly string[],
  now: Date,
): Promise<StoredFile[]> {
  const sql = `${SELECT_FILES} where workspace_id = $1 and id = any($2::uuid[]) and (expires_at is null or expires_at > $3)`;
  return db.query<StoredFile>(sql, [workspaceId, ids, now]);
}

export async function deleteFile(tx: Queryable, id: string): Promise<void> {
  await tx.query('delete from files where id = $1', [id]);
}

/** Returns the blobs that they had. */
export async function deleteFilesOf(tx: Queryable, workspaceId: string): Promise<string[]> {
  const sql = 'delete from files where workspace_id = $1 returning blob_id as "blobId"';
  return (await tx.query<{ blobId: string }>(sql, [workspaceId])).map(({ blobId }) => blobId);
}
