/**
 * Processes for the operator: the leases that each holds, and releasing those of a lost one. Leases of a lost process
 * count as spent until its journal is replayed or an operator releases them.
 */
import { existsSync } from 'node:fs';
import { hostname } from 'node:os';
import { gatewayAuthor, operatorAuthor, recordChange } from '../../audit/index.ts';
import type { Clock } from '../../base/clock.ts';
import { GatewayError } from '../../base/errors.ts';
import { type Nano, usdFromNano } from '../../base/money.ts';
import type { Changes, Database, Queryable } from '../../storage/database.ts';
import { type Interval, type Scope, windowEnd } from '../budget.ts';
import { GONE_MS, type ProcessRow, processById, readLeases, readProcesses, releaseLeases } from './store.ts';

/** Announced when leases are returned: the id of the returning process, a space, the window id. */
export const RETURN = 'spend-return';

/** Amount that a process holds of one budget in its current window. */
export interface Hold {
  scope: Scope;
  scopeId: string;
  interval: Interval;
  nano: Nano;
}

export interface SpendProcess {
  id: string;
  /**
   * `live`: its heartbeat is at most 90 s old. `gone`: it is older, and the journal is not replayed. `replayed`: the
   * journal is replayed, and the process holds the cost bounds of requests that were open when it died.
   */
  state: 'live' | 'gone' | 'replayed';
  host: string | null;
  /** Folder of its journal. */
  journalDir: string | null;
  /** Of the gateway; null if unknown. */
  version: string | null;
  /** Wall time in ms; null if unknown. */
  startedAt: number | null;
  /** Last heartbeat, wall time in ms; null if unknown. */
  seenAt: number | null;
  /** Requests that were open when it died; null before its journal is replayed. */
  openRequests: number | null;
  /** Its journal is on this machine, so a gateway that starts here replays it. */
  journalHere: boolean;
  holds: Hold[];
}

/** All live processes, and all others that hold a part of a current window. */
export async function listProcesses(db: Queryable, nowMs: number): Promise<SpendProcess[]> {
  const leases = Map.groupBy(await readLeases(db), ({ processId }) => processId);
  const processes = (await readProcesses(db)).map((row): SpendProcess => {
    const state = stateOf(row, nowMs);
    return {
      id: row.id,
      state,
      host: row.host,
      journalDir: row.journalDir,
      version: row.version,
      startedAt: row.startedAt === null ? null : row.startedAt.getTime(),
      seenAt: row.seenAt === null ? null : row.seenAt.getTime(),
      openRequests: row.openRequests,
      journalHere: state === 'gone' && isHere(row),
      holds: (leases.get(row.id) ?? []).flatMap(({ windowId, nano }) => holdOf(windowId, nano, nowMs) ?? []),
    };
  });
  return processes.filter(({ state, holds }) => state === 'live' || holds.length > 0);
}

/** Processes that hold something and had no heartbeat for `silentMs`: an operator should release or restart them. */
export async function unreturnedProcesses(db: Queryable, nowMs: number, silentMs: number): Promise<SpendProcess[]> {
  const processes = await listProcesses(db, nowMs);
  return processes.filter(
    ({ state, seenAt }) => state === 'replayed' || (state === 'gone' && (seenAt ?? 0) < nowMs - silentMs),
  );
}

function stateOf({ seenAt, replayedAt }: ProcessRow, nowMs: number): SpendProcess['state'] {
  if (replayedAt !== null) return 'replayed';
  return seenAt !== null && seenAt.getTime() > nowMs - GONE_MS ? 'live' : 'gone';
}

function isHere({ host, journalDir }: ProcessRow): boolean {
  return host === hostname() && journalDir !== null && journalDir !== '' && existsSync(journalDir);
}

/** Undefined for a window that has ended, because its leases no longer matter. */
function holdOf(windowId: string, nano: Nano, nowMs: number): Hold | undefined {
  const parts = windowId.split('/');
  const [start, interval, scope] = [Number(parts.at(-1)), parts.at(-2) as Interval, parts[0] as Scope];
  const end = windowEnd(interval, start);
  if (end !== null && end <= nowMs) return undefined;
  return { scope, scopeId: parts.slice(1, -2).join('/'), interval, nano };
}

interface ReleaseParts {
  database: Database;
  changes: Changes;
  clock: Clock;
  organizationId: string;
}

/**
 * Returns everything that a process holds, with an audit entry. If the process returns with its journal, its rows are
 * still entered, so a limit may then be exceeded by the released amount.
 *
 * Throws GatewayError 404 for a process that holds nothing, and 409 for a live one unless `force` is set.
 */
export async function releaseProcess(
  { database, changes, clock, organizationId }: ReleaseParts,
  processId: string,
  { force = false }: { force?: boolean } = {},
): Promise<Hold[]> {
  return database.transaction(async (tx) => {
    const now = clock.now();
    const row = (await processById(tx, processId)) ?? unknownProcess(processId);
    const leases = await readLeases(tx, processId);
    if (leases.length === 0) {
      throw new GatewayError('not_found', `process ${processId} does not exist or holds no lease`, { status: 404 });
    }
    if (!force && stateOf(row, now) === 'live') {
      throw new GatewayError(
        'invalid_request',
        `process ${processId} was alive within the last ${GONE_MS / 1000} s; its leases are in use`,
        { status: 409 },
      );
    }
    const holds = leases.flatMap(({ windowId, nano }) => holdOf(windowId, nano, now) ?? []);
    await releaseLeases(tx, row, now);
    await recordChange(tx, operatorAuthor(organizationId, now), {
      action: 'process.released',
      resourceType: 'process',
      resourceId: processId,
      workspaceId: null,
      before: {
        state: stateOf(row, now),
        host: row.host,
        seen_at: row.seenAt?.toISOString() ?? null,
        open_requests: row.openRequests,
        holds: holds.map(({ scope, scopeId, interval, nano }) => ({
          scope,
          id: scopeId,
          reset_interval: interval,
          released_usd: usdFromNano(nano),
        })),
      },
    });
    await changes.announce(tx, RETURN, ...leases.map(({ windowId }) => `${processId} ${windowId}`));
    return holds;
  });
}

function unknownProcess(id: string): ProcessRow {
  const nothing = { host: null, journalDir: null, version: null, startedAt: null, seenAt: null };
  return { id, ...nothing, replayedAt: null, releasedAt: null, openRequests: null };
}

/** Adds an audit entry that a released process returned and its rows were entered: a limit may be exceeded. */
export function recordReturn(
  tx: Queryable,
  organizationId: string,
  processId: string,
  nowMs: number,
  entered: object,
): Promise<void> {
  return recordChange(tx, gatewayAuthor(organizationId, nowMs), {
    action: 'process.returned',
    resourceType: 'process',
    resourceId: processId,
    workspaceId: null,
    after: entered,
  });
}
