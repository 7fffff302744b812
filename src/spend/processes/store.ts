/** The SQL of processes: their heartbeats and leases. */
import type { Nano } from '../../base/money.ts';
import type { Queryable } from '../../storage/database.ts';
import { leasesOf, lockWindows } from '../store.ts';

/** A process without a heartbeat for this long counts as gone: three times the heartbeat interval. */
export const GONE_MS = 90_000;

/** Location of a process: its host and its journal folder there. */
export interface JournalLocation {
  host: string;
  folder: string;
}

/** Registers a process, or renews its heartbeat. A released process that is alive becomes an ordinary one again. */
export async function touchProcess(
  db: Queryable,
  processId: string,
  { host, folder }: JournalLocation,
  nowMs: number,
): Promise<void> {
  await db.query(
    `INSERT INTO spend_processes (id, place, host, seen_at) VALUES ($1, $2, $3, $4)
     ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at, released_at = NULL`,
    [processId, folder, host, new Date(nowMs)],
  );
}

/** Returns all leases of a process and removes it. Call it in a transaction. */
export async function forgetProcess(tx: Queryable, processId: string): Promise<void> {
  await keepLeases(tx, processId, new Map());
  await tx.query('DELETE FROM spend_processes WHERE id = $1', [processId]);
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
    await tx.query('DELETE FROM spend_processes WHERE id = $1', [processId]);
    return;
  }
  const now = new Date(nowMs);
  await tx.query(
    `INSERT INTO spend_processes (id, place, seen_at, replayed_at, open_requests) VALUES ($1, '', $2, $2, $3)
     ON CONFLICT (id) DO UPDATE SET replayed_at = excluded.replayed_at, open_requests = excluded.open_requests`,
    [processId, now, open.requests],
  );
}

/** Lowers every lease of a process to its kept amount. Returns the number of leases that remain. */
async function keepLeases(tx: Queryable, processId: string, kept: ReadonlyMap<string, Nano>): Promise<number> {
  const held = await leasesOf(tx, processId);
  await lockWindows(tx, [...held.keys()]);
  const rest = [...kept].map(([id, nano]) => ({ id, nano: String(nano) }));
  const [count] = await tx.query<{ kept: number }>(
    `WITH old AS MATERIALIZED (
       SELECT lease.window_id, lease.amount_nano, LEAST(lease.amount_nano, COALESCE(rest.nano, 0)) AS keep_nano
       FROM spend_leases lease
       LEFT JOIN jsonb_to_recordset($2::jsonb) AS rest(id text, nano bigint) ON rest.id = lease.window_id
       WHERE lease.process_id = $1 ORDER BY lease.window_id FOR UPDATE OF lease
     ), gone AS (
       DELETE FROM spend_leases lease USING old
       WHERE lease.process_id = $1 AND lease.window_id = old.window_id AND old.keep_nano = 0
     ), shrunk AS (
       UPDATE spend_leases lease SET amount_nano = old.keep_nano FROM old
       WHERE lease.process_id = $1 AND lease.window_id = old.window_id AND old.keep_nano > 0
     ), returned AS (
       UPDATE spend_windows own SET leased_nano = own.leased_nano - (old.amount_nano - old.keep_nano)
       FROM old WHERE own.id = old.window_id
     )
     SELECT count(*)::int AS kept FROM old WHERE keep_nano > 0`,
    [processId, JSON.stringify(rest)],
  );
  return count!.kept;
}

/**
 * For a copy of an installation, where no process of the original runs. The cost bounds of open requests stay, because
 * their actual cost is unknown in the copy too.
 */
export async function forgetEveryProcess(tx: Queryable): Promise<void> {
  await tx.query('DELETE FROM spend_processes WHERE replayed_at IS NULL');
  await tx.query('DELETE FROM spend_leases WHERE process_id NOT IN (SELECT id FROM spend_processes)');
  await tx.query(
    `UPDATE spend_windows own SET leased_nano = COALESCE(
       (SELECT sum(amount_nano) FROM spend_leases lease WHERE lease.window_id = own.id), 0)
     WHERE leased_nano <> 0`,
  );
}

export interface ProcessRow {
  id: string;
  host: string | null;
  place: string | null;
  seenAt: Date | null;
  replayedAt: Date | null;
  releasedAt: Date | null;
  openRequests: number | null;
}

const COLUMNS = `id, host, place, seen_at AS "seenAt", replayed_at AS "replayedAt", released_at AS "releasedAt",
  open_requests AS "openRequests"`;

/** Locks the row until the transaction ends. */
export async function processById(tx: Queryable, processId: string): Promise<ProcessRow | undefined> {
  const [row] = await tx.query<ProcessRow>(`SELECT ${COLUMNS} FROM spend_processes WHERE id = $1 FOR UPDATE`, [
    processId,
  ]);
  return row;
}

/** All processes, including those known only by their leases. */
export async function readProcesses(db: Queryable): Promise<ProcessRow[]> {
  const rows = await db.query<ProcessRow>(`SELECT ${COLUMNS} FROM spend_processes ORDER BY id`);
  const unknown = await db.query<{ id: string }>(
    `SELECT DISTINCT process_id AS id FROM spend_leases
     WHERE process_id NOT IN (SELECT id FROM spend_processes) ORDER BY 1`,
  );
  const nothing = { host: null, place: null, seenAt: null, replayedAt: null, releasedAt: null, openRequests: null };
  return rows.concat(unknown.map(({ id }) => ({ id, ...nothing })));
}

interface LeaseRow {
  processId: string;
  windowId: string;
  nano: Nano;
}

/** Leases of all processes, or of one. */
export async function readLeases(db: Queryable, processId?: string): Promise<LeaseRow[]> {
  const rows = await db.query<LeaseRow>(
    `SELECT process_id AS "processId", window_id AS "windowId", amount_nano AS nano FROM spend_leases
     WHERE amount_nano > 0 AND ($1::text IS NULL OR process_id = $1) ORDER BY process_id, window_id`,
    [processId ?? null],
  );
  return rows.map((row) => ({ ...row, nano: BigInt(row.nano) }));
}

/** Returns all leases of a process. Keeps its row, so that a later replay is noticed. Call it in a transaction. */
export async function releaseLeases(tx: Queryable, { id, replayedAt }: ProcessRow, nowMs: number): Promise<void> {
  await keepLeases(tx, id, new Map());
  // A replayed journal cannot return.
  if (replayedAt !== null) await tx.query('DELETE FROM spend_processes WHERE id = $1', [id]);
  else await tx.query('UPDATE spend_processes SET released_at = $2 WHERE id = $1', [id, new Date(nowMs)]);
}
