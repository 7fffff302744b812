/** The SQL of files. Callers open the transactions; ids and times are made above. */
import { type Columns, insertRow, selectList } from '../storage/columns.ts';
import type { Queryable } from '../storage/database.ts';

export interface StoredFile {
  id: string;
  organizationId: string;
  workspaceId: string;
  filename: string;
  mimeType: string;
  bytes: number;
  blobId: string;
  purpose: string;
  downloadable: boolean;
  createdAt: Date;
}

const COLUMNS: Columns<StoredFile> = {
  id: 'id',
  organizationId: 'organization_id',
  workspaceId: 'workspace_id',
  filename: 'filename',
  mimeType: 'mime_type',
  bytes: { name: 'bytes', read: 'float8' },
  blobId: 'blob_id',
  purpose: 'purpose',
  downloadable: 'downloadable',
  createdAt: 'created_at',
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

/** Oldest first. @param after an id; the page begins with the next one */
export function listFiles(
  db: Queryable,
  workspaceId: string,
  { after, limit, purpose }: { after: string | undefined; limit: number; purpose: string | undefined },
): Promise<StoredFile[]> {
  return db.query<StoredFile>(
    `${SELECT_FILES} where workspace_id = $1 and ($2::uuid is null or id > $2) and ($3::text is null or purpose = $3)
      order by id limit $4`,
    [workspaceId, after ?? null, purpose ?? null, limit],
  );
}

/** @param hold keeps the row for the transaction */
export async function findFile(
  db: Queryable,
  workspaceId: string,
  id: string,
  hold = false,
): Promise<StoredFile | undefined> {
  const sql = `${SELECT_FILES} where workspace_id = $1 and id = $2${hold ? ' for update' : ''}`;
  const [file] = await db.query<StoredFile>(sql, [workspaceId, id]);
  return file;
}

export async function deleteFile(tx: Queryable, id: string): Promise<void> {
  await tx.query('delete from files where id = $1', [id]);
}

/** Returns the blobs that they had. */
export async function deleteFilesOf(tx: Queryable, workspaceId: string): Promise<string[]> {
  const sql = 'delete from files where workspace_id = $1 returning blob_id as "blobId"';
  return (await tx.query<{ blobId: string }>(sql, [workspaceId])).map(({ blobId }) => blobId);
}
