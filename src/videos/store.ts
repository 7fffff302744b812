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
  /** The process that polls for it; null: none. */
  claimedBy: string | null;
  /** The provider's id of the job. Null, like the members below, in jobs of earlier versions. */
  upstreamId: string | null;
  endpointId: string | null;
  /** As in `ProviderAccount`. */
  credential: string | null;
  byokId: string | null;
  /** The duration that the request asked for. */
  seconds: number | null;
  /** The row of the ledger (`StoredRow`) for a job whose end cannot be found out. */
  estimate: string | null;
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
  claimedBy: 'claimed_by',
  upstreamId: 'upstream_id',
  endpointId: 'endpoint_id',
  credential: 'credential',
  byokId: 'byok_id',
  seconds: 'seconds',
  estimate: 'estimate',
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

/** In any workspace. */
export async function findJob(db: Queryable, id: string): Promise<VideoJob | undefined> {
  const [job] = await db.query<VideoJob>(`select ${selectList(COLUMNS, 'videos')} from videos where id = $1`, [id]);
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

/** Ends a job. Returns false if it has ended or was deleted before. */
export async function finishVideo(tx: Queryable, id: string, end: VideoEnd): Promise<boolean> {
  const rows = await tx.query(
    `update videos set status = $2, error = $3, cost = $4, is_byok = $5, blob_id = $6, media_type = $7, estimate = null
     where id = $1 and status = 'in_progress' returning id`,
    [id, end.status, end.error, end.cost, end.isByok, end.blobId, end.mediaType],
  );
  return rows.length === 1;
}

export async function renewVideos(db: Queryable, ids: readonly string[], claim: Claim): Promise<void> {
  await db.query(
    `update videos set claimed_until = $2 where id = any($1) and status = 'in_progress' and claimed_by = $3`,
    [ids, claim.until, claim.by],
  );
}

/** Of one process on a job. */
interface Claim {
  by: string;
  until: Date;
}

/** Claims jobs whose process is dead or has given them up, at most `limit`. @param living processes, by their ids */
export async function claimVideos(
  db: Queryable,
  claim: Claim,
  { now, living, limit }: { now: Date; living: readonly string[]; limit: number },
): Promise<VideoJob[]> {
  return db.query<VideoJob>(
    `with lost as (
       select id from videos
       where status = 'in_progress' and upstream_id is not null
         and (claimed_by is null or claimed_until < $3 or not claimed_by = any($4))
       order by claimed_until limit $5 for update skip locked
     )
     update videos set claimed_by = $1, claimed_until = $2 from lost where videos.id = lost.id
     returning ${selectList(COLUMNS, 'videos')}`,
    [claim.by, claim.until, now, living, limit],
  );
}

/** Leaves a job to another process. */
export async function leaveVideo(db: Queryable, id: string, by: string): Promise<void> {
  await db.query(`update videos set claimed_by = null where id = $1 and claimed_by = $2`, [id, by]);
}

/** Ends the jobs of dead processes of an earlier version, which no process can continue. */
export async function failLostVideos(db: Queryable, now: Date, error: string): Promise<void> {
  await db.query(
    `update videos set status = 'failed', error = $2
     where status = 'in_progress' and upstream_id is null and claimed_until < $1`,
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
  await db.query(`delete from videos where expires_at < $1 and blob_id is null and status <> 'in_progress'`, [
    expiredBefore,
  ]);
}

/** Deletes the jobs of a workspace that have ended, and lets the others expire. Returns the blobs of the deleted ones. */
export async function deleteVideosOf(tx: Queryable, workspaceId: string): Promise<string[]> {
  await tx.query(`update videos set expires_at = created_at where workspace_id = $1 and status = 'in_progress'`, [
    workspaceId,
  ]);
  const rows = await tx.query<{ blobId: string | null }>(
    `delete from videos where workspace_id = $1 and status <> 'in_progress' returning blob_id as "blobId"`,
    [workspaceId],
  );
  return rows.flatMap(({ blobId }) => blobId ?? []);
}
