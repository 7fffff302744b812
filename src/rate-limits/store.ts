/** The SQL of rate limits. Callers open the transactions. */
import type { Queryable } from '../storage/database.ts';

/** A process's request for a part of one window. */
export interface RateRequest {
  id: string;
  endsAt: Date;
  limit: number;
  /** Amount returned before anything is granted. */
  back: number;
  /** Granted completely or not at all; 0 only returns. */
  need: number;
  /** Granted beyond `need` as far as the window has room. */
  want: number;
  /** Grant at least 1/spareParts of the room, so that not every request asks; 0 for no spare. */
  spareParts: number;
  /** If it cannot be granted, ask other processes to return what they do not need. */
  recall: boolean;
  /** Treat processes that have not answered a recall as needing all they hold. */
  presume: boolean;
}

export interface RateGrant {
  id: string;
  granted: number;
  /** Left unleased after the grant. */
  free: number;
  /** Processes that have not answered the recall yet. */
  outstanding: number;
}

interface WindowRow {
  id: string;
  granted: bigint;
  recalled: number;
}

/** Moves leases of one process. A grant never takes the total above the limit. */
export async function requestRates(
  tx: Queryable,
  processId: string,
  requests: readonly RateRequest[],
): Promise<{ grants: RateGrant[]; recalled: string[] }> {
  const rows = await lockWindows(tx, requests);
  const recalled: string[] = [];
  const grants = requests.map((request) => {
    const row = rows.get(request.id)!;
    const before = Math.max(0, Number(row.granted) - request.back);
    const granted = grantOf(request, request.limit - before);
    row.granted = BigInt(before + granted);
    const refused = request.need > 0 && granted === 0;
    if (refused && request.recall) {
      row.recalled += 1;
      recalled.push(request.id);
    }
    return { id: request.id, granted, free: Math.max(0, request.limit - before - granted), outstanding: 0 };
  });
  await updateWindows(tx, [...rows.values()]);
  const granted = grants.filter((grant) => grant.granted > 0).map(({ id }) => id);
  if (granted.length > 0) await keepLeases(tx, processId, granted);
  const presumed = requests.filter(({ presume }) => presume).map(({ id }) => id);
  if (presumed.length > 0) await forgetSilent(tx, processId, presumed);
  const refused = grants.filter(({ granted }, index) => granted === 0 && requests[index]!.need > 0);
  if (refused.length > 0) {
    const waiting = await countSilent(
      tx,
      processId,
      refused.map(({ id }) => id),
    );
    for (const grant of refused) grant.outstanding = waiting.get(grant.id) ?? 0;
  }
  return { grants: grants, recalled };
}

/** Returns leases, and thereby answers every recall so far. Windows that no longer exist are ignored. */
export async function returnRates(
  tx: Queryable,
  processId: string,
  returns: readonly { id: string; back: number }[],
): Promise<void> {
  const ids = returns.map(({ id }) => id);
  await tx.query('select 1 from rate_windows where id = any($1) order by id collate "C" for update', [ids]);
  await tx.query(
    `update rate_windows own set granted = greatest(own.granted - given.back, 0)
     from unnest($1::text[], $2::bigint[]) as given(id, back) where own.id = given.id and given.back > 0`,
    [ids, returns.map(({ back }) => back)],
  );
  await tx.query(
    `update rate_leases lease set answered = own.recalled from rate_windows own
     where own.id = lease.window_id and lease.process_id = $1 and own.id = any($2)`,
    [processId, ids],
  );
}

/** Deletes windows that ended before `endedBefore`. */
export async function removeEnded(db: Queryable, endedBefore: Date): Promise<void> {
  await db.query('delete from rate_windows where ends_at < $1', [endedBefore]);
}

function grantOf(request: RateRequest, free: number): number {
  const spare = free - request.need;
  if (request.need === 0 || spare < 0) return 0;
  const share = request.spareParts === 0 ? 0 : Math.floor(spare / request.spareParts);
  return request.need + Math.min(spare, Math.max(share, request.want));
}

async function lockWindows(tx: Queryable, requests: readonly RateRequest[]): Promise<Map<string, WindowRow>> {
  const ids = requests.map(({ id }) => id);
  await tx.query(
    `insert into rate_windows (id, ends_at)
     select id, ends_at from unnest($1::text[], $2::timestamptz[]) as asked(id, ends_at) order by id collate "C"
     on conflict (id) do nothing`,
    [ids, requests.map(({ endsAt }) => endsAt)],
  );
  const rows = await tx.query<WindowRow>(
    'select id, granted, recalled from rate_windows where id = any($1) order by id collate "C" for update',
    [ids],
  );
  return new Map(rows.map((row) => [row.id, row]));
}

async function updateWindows(tx: Queryable, rows: readonly WindowRow[]): Promise<void> {
  await tx.query(
    `update rate_windows own set granted = change.granted, recalled = change.recalled
     from unnest($1::text[], $2::bigint[], $3::integer[]) as change(id, granted, recalled) where own.id = change.id`,
    [rows.map(({ id }) => id), rows.map(({ granted }) => granted), rows.map(({ recalled }) => recalled)],
  );
}

/** A process without a lease in the window has nothing to return, so its recalls count as answered. */
async function keepLeases(tx: Queryable, processId: string, ids: readonly string[]): Promise<void> {
  await tx.query(
    `insert into rate_leases (window_id, process_id, answered)
     select id, $1, recalled from rate_windows where id = any($2) on conflict (window_id, process_id) do nothing`,
    [processId, ids],
  );
}

async function countSilent(tx: Queryable, processId: string, ids: readonly string[]): Promise<Map<string, number>> {
  const rows = await tx.query<{ id: string; count: number }>(
    `select lease.window_id as id, count(*)::int as count
     from rate_leases lease join rate_windows own on own.id = lease.window_id
     where own.id = any($2) and lease.process_id <> $1 and lease.answered < own.recalled group by lease.window_id`,
    [processId, ids],
  );
  return new Map(rows.map(({ id, count }) => [id, count]));
}

async function forgetSilent(tx: Queryable, processId: string, ids: readonly string[]): Promise<void> {
  await tx.query(
    `delete from rate_leases lease using rate_windows own
     where own.id = lease.window_id and own.id = any($2) and lease.process_id <> $1 and lease.answered < own.recalled`,
    [processId, ids],
  );
}
