/** The SQL of memories. Callers open the transactions. */
import type { Queryable } from '../storage/database.ts';
import type { StoredText } from './sealed.ts';

interface Owner {
  workspaceId: string;
  /** SHA-256. */
  owner: Buffer;
}

/** Holds the workspace, so that two changes at once cannot pass a limit together or lose each other. */
export async function lockWorkspace(tx: Queryable, workspaceId: string): Promise<void> {
  await tx.query('select 1 from workspaces where id = $1 for no key update', [workspaceId]);
}

/** In the order of their paths. */
export async function filesOf(
  db: Queryable,
  { workspaceId, owner }: Owner,
): Promise<{ path: string; bytes: number }[]> {
  return db.query(
    'select path, bytes from memory_files where workspace_id = $1 and owner = $2 order by path collate "C"',
    [workspaceId, owner],
  );
}

export async function contentOf(
  db: Queryable,
  { workspaceId, owner }: Owner,
  path: string,
): Promise<StoredText | undefined> {
  const [row] = await db.query<StoredText>(
    'select id, content, sealed from memory_files where workspace_id = $1 and owner = $2 and path = $3',
    [workspaceId, owner, path],
  );
  return row;
}

interface StoredFile extends StoredText {
  path: string;
  bytes: number;
  updatedAt: Date;
}

/** With their texts, in the order of their paths. */
export async function contentsOf(db: Queryable, { workspaceId, owner }: Owner): Promise<StoredFile[]> {
  return db.query(
    `select id, content, sealed, path, bytes, updated_at as "updatedAt" from memory_files
      where workspace_id = $1 and owner = $2 order by path collate "C"`,
    [workspaceId, owner],
  );
}

export interface Folder {
  owner: Buffer;
  isSession: boolean;
  files: number;
  bytes: number;
  updatedAt: Date;
}

/** The folders of a workspace, the last changed first. @param owner of a single one */
export async function foldersOf(
  db: Queryable,
  {
    workspaceId,
    owner,
    offset,
    limit,
  }: { workspaceId: string; owner: Buffer | undefined; offset: number; limit: number },
): Promise<{ folders: Folder[]; total: number }> {
  const rows = await db.query<Folder & { total: number }>(
    `select owner, bool_or(is_session) as "isSession", count(*)::int as files, sum(bytes)::int as bytes,
            max(updated_at) as "updatedAt", count(*) over ()::int as total
       from memory_files where workspace_id = $1 and ($2::bytea is null or owner = $2)
      group by owner order by max(updated_at) desc, owner offset $3 limit $4`,
    [workspaceId, owner ?? null, offset, limit],
  );
  return { folders: rows.map(({ total: _, ...folder }) => folder), total: rows[0]?.total ?? 0 };
}

export async function bytesOfWorkspace(tx: Queryable, workspaceId: string): Promise<number> {
  const [row] = await tx.query<{ bytes: number }>(
    'select coalesce(sum(bytes), 0)::float8 as bytes from memory_files where workspace_id = $1',
    [workspaceId],
  );
  return row!.bytes;
}

interface WrittenFile {
  /** Of the row. */
  id: string;
  path: string;
  bytes: number;
  sealed: Buffer;
  isSession: boolean;
  now: Date;
}

export async function writeFile(tx: Queryable, { workspaceId, owner }: Owner, file: WrittenFile): Promise<void> {
  const { id, path, bytes, sealed, isSession, now } = file;
  await tx.query(
    `insert into memory_files (workspace_id, owner, is_session, path, sealed, bytes, updated_at, id)
     values ($1, $2, $3, $4, $5, $6, $7, $8)
     on conflict (workspace_id, owner, path)
     do update set content = null, sealed = excluded.sealed, bytes = excluded.bytes, updated_at = excluded.updated_at`,
    [workspaceId, owner, isSession, path, sealed, bytes, now, id],
  );
}

/** A file, or a folder with all that is in it. Returns the number of files. */
export async function removeAt(tx: Queryable, { workspaceId, owner }: Owner, path: string): Promise<number> {
  const rows = await tx.query(
    `delete from memory_files where workspace_id = $1 and owner = $2 and (path = $3 or starts_with(path, $3 || '/'))
     returning 1`,
    [workspaceId, owner, path],
  );
  return rows.length;
}

/** Returns the number of files. */
export async function removeFolder(tx: Queryable, { workspaceId, owner }: Owner): Promise<number> {
  const rows = await tx.query('delete from memory_files where workspace_id = $1 and owner = $2 returning 1', [
    workspaceId,
    owner,
  ]);
  return rows.length;
}

/** The same for renaming. */
export async function moveTo(tx: Queryable, { workspaceId, owner }: Owner, from: string, to: string): Promise<number> {
  const rows = await tx.query(
    `update memory_files set path = $4 || substr(path, length($3) + 1)
     where workspace_id = $1 and owner = $2 and (path = $3 or starts_with(path, $3 || '/')) returning 1`,
    [workspaceId, owner, from, to],
  );
  return rows.length;
}

/** Files of sessions that nobody has changed since then. */
export async function removeOldSessions(tx: Queryable, workspaceId: string, before: Date): Promise<void> {
  await tx.query('delete from memory_files where workspace_id = $1 and is_session and updated_at < $2', [
    workspaceId,
    before,
  ]);
}

/** For a workspace that is deleted. */
export async function endMemories(tx: Queryable, workspaceId: string): Promise<void> {
  await tx.query('delete from memory_files where workspace_id = $1', [workspaceId]);
}
