/** The SQL of processes: their heartbeats and leases. */
import type { Nano } from '../../base/money.ts';
import type { Queryable } from '../../storage/database.ts';
import { leasesOf, lockWindows } from '../store.ts';

/** A process without a heartbeat for this long counts as gone: three times the heartbeat interval. */
export const GONE_MS = 90_000;

/** The facts that a process reports about itself. */
export interface ProcessFacts {
  host: string;
  /** Of its journal. */
  folder: string;
  version: string | null;
  startedAt: Date;
}

/** Registers a process, or renews its heartbeat. A released process that is alive becomes an ordinary one again. */
export async function touchProcess(
  db: Queryable,
  processId: string,
  { host, folder, version, startedAt }: ProcessFacts,
  nowMs: number,
): Promise<void> {
  await db.query(
    `insert into spend_processes (id, place, host, version, started_at, seen_at) values ($1, $2, $3, $4, $5, $6)
     on conflict (id) do update set seen_at = excluded.seen_at, released_at = null`,
    [processId, folder, host, version, startedAt, new Date(nowMs)],
  );
}

/** Returns all leases of a process and removes it. Call it in a transaction. */
export async function forgetProcess(tx: Queryable, processId: string): Promise<void> {
  await keepLeases(tx, processId, new Map());
  await tx.query('delete from spend_processes where id = $1', [processId]);
}

/**
 * For a replayed journal: returns the leases of its process except `open`, the cost bounds of its open requests. Leases
 * only shrink here, so that a repeated replay does not take back what an operator has released. Call it in a
 * transaction.
 */
export async function retireProcess(
  tx: Queryable,
  processId: string,
  open: { requests: number; held: ReadonlyMap<string, Nano> },
  nowMs: number,
): Promise<void> {
  const kept = await keepLeases(tx, processId, open.held);
  if (kept === 0) {
    await tx.query('delete from spend_processes where id = $1', [processId]);
    return;
  }
  const now = new Date(nowMs);
  await tx.query(
    `insert into spend_processes (id, place, seen_at, replayed_at, open_requests) values ($1, '', $2, $2, $3)
     on conflict (id) do update set replayed_at = excluded.replayed_at, open_requests = excluded.open_requests`,
    [processId, now, open.requests],
  );
}

/** Lowers every lease of a process to its kept amount. Returns the number of leases that remain. */
async function keepLeases(tx: Queryable, processId: string, kept: ReadonlyMap<string, Nano>): Promise<number> {
  const held = await leasesOf(tx, processId);
  await lockWindows(tx, [...held.keys()]);
  const rest = [...kept].map(([id, nano]) => ({ id, nano: String(nano) }));
  const [count] = await tx.query<{ kept: number }>(
    `with old as materialized (
       select lease.window_id, lease.amount_nano, least(lease.amount_nano, coalesce(rest.nano, 0)) as keep_nano
       from spend_leases lease
       left join jsonb_to_recordset($2::jsonb) as rest(id text, nano bigint) on rest.id = lease.window_id
       where lease.process_id = $1 order by lease.window_id for update of lease
     ), gone as (
       delete from spend_leases lease using old
       where lease.process_id = $1 and lease.window_id = old.window_id and old.keep_nano = 0
     ), shrunk as (
       update spend_leases lease set amount_nano = old.keep_nano from old
       where lease.process_id = $1 and lease.window_id = old.window_id and old.keep_nano > 0
     ), returned as (
       update spend_windows own set leased_nano = own.leased_nano - (old.amount_nano - old.keep_nano)
       from old where own.id = old.window_id
     )
     select count(*)::int as kept from old where keep_nano > 0`,
    [processId, JSON.stringify(rest)],
  );
  return count!.kept;
}

/**
 * For a copy of an installation, where no process of the original runs. The cost bounds of open requests stay, because
 * their actual cost is unknown in the copy too.
 */
export async function forgetEveryProcess(tx: Queryable): Promise<void> {
  await tx.query('delete from spend_processes where replayed_at is null');
  await tx.query(
    `delete from spend_leases
       where process_id not in (select id from spend_processes) and process_id not in (select id from spend_holds)`,
  );
  await tx.query(
    `update spend_windows own set leased_nano = coalesce(
       (select sum(amount_nano) from spend_leases lease where lease.window_id = own.id), 0)
     where leased_nano <> 0`,
  );
}

export interface ProcessRow {
  id: string;
  host: string | null;
  journalDir: string | null;
  version: string | null;
  startedAt: Date | null;
  seenAt: Date | null;
  replayedAt: Date | null;
  releasedAt: Date | null;
  openRequests: number | null;
}

const COLUMNS = `id, host, place AS "journalDir", version, started_at AS "startedAt", seen_at AS "seenAt", replayed_at AS "replayedAt", released_at AS "releasedAt",
  open_requests AS "openRequests"`;

/** Locks the row until the transaction ends. */
export async function processById(tx: Queryable, processId: string): Promise<ProcessRow | undefined> {
  const [row] = await tx.query<ProcessRow>(`select ${COLUMNS} from spend_processes where id = $1 for update`, [
    processId,
  ]);
  return row;
}

/** All processes, including those known only by their leases. */
export async function readProcesses(db: Queryable): Promise<ProcessRow[]> {
  const rows = await db.query<ProcessRow>(`select ${COLUMNS} from spend_processes order by id`);
  const unknown = await db.query<{ id: string }>(
    `select distinct process_id as id from spend_leases
     where process_id not in (select id from spend_processes) and process_id not in (select id from spend_holds)
     order by 1`,
  );
  const nothing = {
    host: null,
    journalDir: null,
    version: null,
    startedAt: null,
    seenAt: null,
    replayedAt: null,
    releasedAt: null,
    openRequests: null,
  };
  return rows.concat(unknown.map(({ id }) => ({ id, ...nothing })));
}

/** Those whose journal is not replayed; a dead one on another machine is among them. */
export async function livingProcesses(db: Queryable): Promise<string[]> {
  const rows = await db.query<{ id: string }>('select id from spend_processes where replayed_at is null');
  return rows.map(({ id }) => id);
}

interface LeaseRow {
  processId: string;
  windowId: string;
  nano: Nano;
}

/** Leases of all processes, or of one. */
export async function readLeases(db: Queryable, processId?: string): Promise<LeaseRow[]> {
  const rows = await db.query<LeaseRow>(
    `select process_id as "processId", window_id as "windowId", amount_nano as nano from spend_leases
     where amount_nano > 0 and ($1::text is null or process_id = $1) order by process_id, window_id`,
    [processId ?? null],
  );
  return rows.map((row) => ({ ...row, nano: BigInt(row.nano) }));
}

/** Returns all leases of a process. Keeps its row, so that a later replay is noticed. Call it in a transaction. */
export async function releaseLeases(tx: Queryable, { id, replayedAt }: ProcessRow, nowMs: number): Promise<void> {
  await keepLeases(tx, id, new Map());
  // A replayed journal cannot return.
  if (replayedAt !== null) await tx.query('delete from spend_processes where id = $1', [id]);
  else await tx.query('update spend_processes set released_at = $2 where id = $1', [id, new Date(nowMs)]);
}
