/** The SQL of video jobs. Callers open the transactions and supply ids and times. */
import { type Columns, insertRow, selectList } from '../storage/columns.ts';
import type { Queryable } from '../storage/database.ts';

export interface VideoJob {
  /** `vid_...` */
  id: string;
  organizationId: string;
  workspaceId: string;
  generationId: string;
  model: string;
  status: 'in_progress' | 'completed' | 'failed';
  error: string | null;
  /** USD; null if unknown. */
  cost: number | null;
  isByok: boolean;
  blobId: string | null;
  mediaType: string | null;
  createdAt: Date;
  expiresAt: Date;
  /** If this time passes while the job is in progress, its process is dead. */
  claimedUntil: Date;
}

const COLUMNS: Columns<VideoJob> = {
  id: 'id',
  organizationId: 'organization_id',
  workspaceId: 'workspace_id',
  generationId: 'generation_id',
  model: 'model',
  status: 'status',
  error: 'error',
  cost: 'cost',
  isByok: 'is_byok',
  blobId: 'blob_id',
  mediaType: 'media_type',
  createdAt: 'created_at',
  expiresAt: 'expires_at',
  claimedUntil: 'claimed_until',
};

export async function insertVideo(tx: Queryable, job: VideoJob): Promise<void> {
  await insertRow(tx, 'videos', COLUMNS, job);
}

export async function findVideo(db: Queryable, id: string, workspaceId: string): Promise<VideoJob | undefined> {
  const [job] = await db.query<VideoJob>(
    `select ${selectList(COLUMNS, 'videos')} from videos where id = $1 and workspace_id = $2`,
    [id, workspaceId],
  );
  return job;
}

interface VideoPage {
  /** The id of the job before the page. */
  after: string | undefined;
  limit: number;
  ascending: boolean;
}

/** The jobs of a workspace by their creation, at most `limit`. */
export function listVideos(
  db: Queryable,
  workspaceId: string,
  { after, limit, ascending }: VideoPage,
): Promise<VideoJob[]> {
  const [further, order] = ascending ? ['>', 'asc'] : ['<', 'desc'];
  return db.query<VideoJob>(
    `select ${selectList(COLUMNS, 'videos')} from videos
      where workspace_id = $1 and ($2::text is null or id ${further} $2) order by id ${order} limit $3`,
    [workspaceId, after ?? null, limit],
  );
}

/** Deletes a job that has ended. Undefined: there is none. */
export async function deleteVideo(
  tx: Queryable,
  id: string,
  workspaceId: string,
): Promise<Pick<VideoJob, 'blobId'> | undefined> {
  const [row] = await tx.query<Pick<VideoJob, 'blobId'>>(
    `delete from videos where id = $1 and workspace_id = $2 and status <> 'in_progress' returning blob_id as "blobId"`,
    [id, workspaceId],
  );
  return row;
}

export type VideoEnd = Pick<VideoJob, 'status' | 'error' | 'cost' | 'isByok' | 'blobId' | 'mediaType'>;

/** Ends a job, even one that was taken for lost. Returns false if it was completed or deleted before. */
export async function finishVideo(tx: Queryable, id: string, end: VideoEnd): Promise<boolean> {
  const rows = await tx.query(
    `update videos set status = $2, error = $3, cost = $4, is_byok = $5, blob_id = $6, media_type = $7
     where id = $1 and status <> 'completed' returning id`,
    [id, end.status, end.error, end.cost, end.isByok, end.blobId, end.mediaType],
  );
  return rows.length === 1;
}

export async function renewVideos(db: Queryable, ids: readonly string[], until: Date): Promise<void> {
  await db.query(`update videos set claimed_until = $2 where id = any($1) and status = 'in_progress'`, [ids, until]);
}

/** Ends the jobs of dead processes. Their requests are settled from the journal. */
export async function failLostVideos(db: Queryable, now: Date, error: string): Promise<void> {
  await db.query(
    `update videos set status = 'failed', error = $2 where status = 'in_progress' and claimed_until < $1`,
    [now, error],
  );
}

/** Clears the content of expired jobs. Returns the blobs, at most `limit`. */
export async function takeExpired(tx: Queryable, now: Date, limit: number): Promise<string[]> {
  const rows = await tx.query<{ blobId: string }>(
    `with expired as (
       select id, blob_id from videos where expires_at < $1 and blob_id is not null limit $2 for update skip locked
     )
     update videos v set blob_id = null from expired e where v.id = e.id returning e.blob_id as "blobId"`,
    [now, limit],
  );
  return rows.map(({ blobId }) => blobId);
}

export async function deleteVideosBefore(db: Queryable, expiredBefore: Date): Promise<void> {
  await db.query('delete from videos where expires_at < $1 and blob_id is null', [expiredBefore]);
}

/** Returns the blobs of the deleted jobs. */
export async function deleteVideosOf(tx: Queryable, workspaceId: string): Promise<string[]> {
  const rows = await tx.query<{ blobId: string | null }>(
    'delete from videos where workspace_id = $1 returning blob_id as "blobId"',
    [workspaceId],
  );
  return rows.flatMap(({ blobId }) => blobId ?? []);
}
