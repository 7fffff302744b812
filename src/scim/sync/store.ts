/** The SQL of sync jobs. */
import type { Queryable } from '../../storage/database.ts';

type JobStatus = 'queued' | 'running' | 'succeeded' | 'failed';

export interface StoredJob {
  id: string;
  organizationId: string;
  status: JobStatus;
  attempts: number;
  syncedGroups: number | null;
  deletedGroups: number | null;
  errorMessage: string | null;
  createdAt: Date;
  startedAt: Date | null;
  finishedAt: Date | null;
}

export interface Outcome {
  syncedGroups: number | null;
  deletedGroups: number | null;
  errorMessage: string | null;
}

const SELECT_JOBS = `
  select id, organization_id as "organizationId", status, attempts, synced_groups as "syncedGroups",
         deleted_groups as "deletedGroups", error_message as "errorMessage", created_at as "createdAt",
         started_at as "startedAt", finished_at as "finishedAt"
    from scim_sync_jobs`;

export async function findJob(db: Queryable, organizationId: string, id: string): Promise<StoredJob | undefined> {
  const [job] = await db.query<StoredJob>(`${SELECT_JOBS} where organization_id = $1 and id = $2`, [
    organizationId,
    id,
  ]);
  return job;
}

export async function insertJob(tx: Queryable, id: string, organizationId: string, now: Date): Promise<void> {
  const sql = `insert into scim_sync_jobs (id, organization_id, status, created_at) values ($1, $2, 'queued', $3)`;
  await tx.query(sql, [id, organizationId, now]);
}

export async function countUnfinished(tx: Queryable, organizationId: string): Promise<number> {
  const sql = `select count(*)::int as count from scim_sync_jobs
                where organization_id = $1 and status in ('queued', 'running')`;
  const [row] = await tx.query<{ count: number }>(sql, [organizationId]);
  return row?.count ?? 0;
}

/** Deletes finished jobs except the newest `kept`. */
export async function deleteOld(tx: Queryable, organizationId: string, kept: number): Promise<void> {
  await tx.query(
    `delete from scim_sync_jobs where id in (
       select id from scim_sync_jobs where organization_id = $1 and status in ('succeeded', 'failed')
        order by created_at desc, id desc offset $2)`,
    [organizationId, kept],
  );
}

/** The oldest unfinished job, which may be one that a dead process left. */
export async function oldestUnfinished(db: Queryable): Promise<StoredJob | undefined> {
  const sql = `${SELECT_JOBS} where status in ('queued', 'running') order by created_at, id limit 1`;
  const [job] = await db.query<StoredJob>(sql);
  return job;
}

/**
 * Tries to take the installation-wide lock for running jobs; true on success. The transaction holds it until it ends.
 * If the process dies, the server ends the transaction, so no job is stuck or has to wait for a timeout.
 */
export async function takeTurn(tx: Queryable): Promise<boolean> {
  const [row] = await tx.query<{ taken: boolean }>(
    `select pg_try_advisory_xact_lock(hashtext('gatehouse scim sync jobs')) as taken`,
  );
  return row?.taken === true;
}

/** Throws if the lock was lost with its connection. */
export async function checkTurn(tx: Queryable): Promise<void> {
  await tx.query('select 1');
}

export async function beginJob(db: Queryable, id: string, now: Date): Promise<void> {
  await db.query(
    `update scim_sync_jobs set status = 'running', attempts = attempts + 1, started_at = coalesce(started_at, $2)
      where id = $1`,
    [id, now],
  );
}

export async function endJob(db: Queryable, id: string, outcome: Outcome, now: Date): Promise<void> {
  const { syncedGroups, deletedGroups, errorMessage } = outcome;
  await db.query(
    `update scim_sync_jobs set status = $2, synced_groups = $3, deleted_groups = $4, error_message = $5,
       finished_at = $6 where id = $1 and status in ('queued', 'running')`,
    [id, errorMessage === null ? 'succeeded' : 'failed', syncedGroups, deletedGroups, errorMessage, now],
  );
}

/** Users whose membership differs from their `active` state. */
export function strayUsers(tx: Queryable, organizationId: string) {
  return tx.query<{ userId: string; active: boolean }>(
    `select u.user_id as "userId", u.active from scim_users u
       left join members m on m.organization_id = u.organization_id and m.user_id = u.user_id
      where u.organization_id = $1 and u.active <> (m.user_id is not null)`,
    [organizationId],
  );
}
