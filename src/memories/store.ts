/** The SQL of memories. Callers open the transactions. */
import type { Queryable } from '../storage/database.ts';

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
): Promise<string | undefined> {
  const [row] = await db.query<{ content: string }>(
    'select content from memory_files where workspace_id = $1 and owner = $2 and path = $3',
    [workspaceId, owner, path],
  );
  return row?.content;
}

export async function bytesOfWorkspace(tx: Queryable, workspaceId: string): Promise<number> {
  const [row] = await tx.query<{ bytes: number }>(
    'select coalesce(sum(bytes), 0)::float8 as bytes from memory_files where workspace_id = $1',
    [workspaceId],
  );
  return row!.bytes;
}

interface WrittenFile {
  path: string;
  content: string;
  isSession: boolean;
  now: Date;
}

export async function writeFile(tx: Queryable, { workspaceId, owner }: Owner, file: WrittenFile): Promise<void> {
  const { path, content, isSession, now } = file;
  await tx.query(
    `insert into memory_files (workspace_id, owner, is_session, path, content, bytes, updated_at)
     values ($1, $2, $3, $4, $5, $6, $7)
     on conflict (workspace_id, owner, path)
     do update set content = excluded.content, bytes = excluded.bytes, updated_at = excluded.updated_at`,
    [workspaceId, owner, isSession, path, content, Buffer.byteLength(content), now],
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
