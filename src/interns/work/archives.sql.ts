/** The SQL of archived workspaces of deleted interns, and of sandboxes that remain to be destroyed. */
import { type Columns, insertRow } from '../../storage/columns.ts';
import type { Queryable } from '../../storage/database.ts';

interface Archive {
  readonly internId: string;
  readonly organizationId: string;
  readonly workspaceId: string;
  readonly name: string;
  readonly blobId: string;
  readonly bytes: number;
  readonly createdAt: Date;
}

const ARCHIVE: Columns<Archive> = {
  internId: 'intern_id',
  organizationId: 'organization_id',
  workspaceId: 'workspace_id',
  name: 'name',
  blobId: 'blob_id',
  bytes: 'bytes',
  createdAt: 'created_at',
};

export async function insertArchive(tx: Queryable, archive: Archive): Promise<void> {
  await insertRow(tx, 'intern_archives', ARCHIVE, archive);
}

export async function hasArchive(db: Queryable, internId: string): Promise<boolean> {
  return (await db.query('select 1 from intern_archives where intern_id = $1', [internId])).length > 0;
}

/** Returns the blobs. */
export async function deleteArchivesIn(tx: Queryable, workspaceId: string): Promise<string[]> {
  const sql = 'delete from intern_archives where workspace_id = $1 returning blob_id as id';
  return (await tx.query<{ id: string }>(sql, [workspaceId])).map(({ id }) => id);
}

/** Returns the blobs. */
export async function deleteOldArchives(tx: Queryable, createdBefore: Date, limit: number): Promise<string[]> {
  const sql = `delete from intern_archives where intern_id in (
    select intern_id from intern_archives where created_at < $1 order by created_at limit $2) returning blob_id as id`;
  return (await tx.query<{ id: string }>(sql, [createdBefore, limit])).map(({ id }) => id);
}

/** Deletes the interns of a workspace, and notes their sandboxes. Returns their ids. */
export async function deleteInternsIn(tx: Queryable, workspaceId: string): Promise<string[]> {
  const rows = await tx.query<{ id: string }>(
    `with gone as (delete from interns where workspace_id = $1 returning id)
      insert into intern_remains (intern_id) select id from gone on conflict do nothing returning intern_id as id`,
    [workspaceId],
  );
  return rows.map(({ id }) => id);
}

export async function remains(db: Queryable, limit: number): Promise<string[]> {
  const sql = 'select intern_id as id from intern_remains order by intern_id limit $1';
  return (await db.query<{ id: string }>(sql, [limit])).map(({ id }) => id);
}

export async function forgetRemains(db: Queryable, internId: string): Promise<void> {
  await db.query('delete from intern_remains where intern_id = $1', [internId]);
}
