/**
 * Processes as an operator sees them: what each holds of budgets, and the release of what a lost one holds. Leases of a
 * lost process count as spent until its journal is replayed or an operator releases them.
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

/** The topic under which returned leases are announced: the process that returned them, a space, the window. */
export const RETURN = 'spend-return';

/** What a process holds of one budget in its present window. */
export interface Hold {
  scope: Scope;
  scopeId: string;
  interval: Interval;
  nano: Nano;
}

export interface SpendProcess {
  id: string;
  /**
   * `live`: it showed itself within 90 s. `gone`: it did not, and its journal is not entered. `replayed`: its journal is
   * entered, and it holds the bounds of requests that were open when it died.
   */
  state: 'live' | 'gone' | 'replayed';
  host: string | null;
  /** Folder of its journal. */
  place: string | null;
  /** Wall time in ms; null: unknown. */
  seenAt: number | null;
  /** Requests that were open when it died; null before its journal is entered. */
  openRequests: number | null;
  /** Its journal lies on this machine, so that a gateway that starts here enters it. */
  journalHere: boolean;
  holds: Hold[];
}

/** Every live process, and every other that holds something of a present window. */
export async function listProcesses(db: Queryable, nowMs: number): Promise<SpendProcess[]> {
  const leases = Map.groupBy(await readLeases(db), ({ processId }) => processId);
  const processes = (await readProcesses(db)).map((row): SpendProcess => {
    const state = stateOf(row, nowMs);
    return {
      id: row.id,
      state,
      host: row.host,
      place: row.place,
      seenAt: row.seenAt === null ? null : row.seenAt.getTime(),
      openRequests: row.openRequests,
      journalHere: state === 'gone' && isHere(row),
      holds: (leases.get(row.id) ?? []).flatMap(({ windowId, nano }) => holdOf(windowId, nano, nowMs) ?? []),
    };
  });
  return processes.filter(({ state, holds }) => state === 'live' || holds.length > 0);
}

/** Those that hold something and showed no sign of life for `silentMs`: an operator should release or restart them. */
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

function isHere({ host, place }: ProcessRow): boolean {
  return host === hostname() && place !== null && place !== '' && existsSync(place);
}

/** Undefined for a window that is over: nothing is held of it any more. */
function holdOf(windowId: string, nano: Nano, nowMs: number): Hold | undefined {
  const parts = windowId.split('/');
  const [start, interval, scope] = [Number(parts.at(-1)), parts.at(-2) as Interval, parts[0] as Scope];
  const end = windowEnd(interval, start);
  if (end !== null && end <= nowMs) return undefined;
  return { scope, scopeId: parts.slice(1, -2).join('/'), interval, nano };
}

export interface ReleaseParts {
  database: Database;
  changes: Changes;
  clock: Clock;
  organizationId: string;
}

/**
 * Returns everything that a process holds, with an entry in the audit log. If the process comes back with its journal, its
 * rows are entered all the same, so a limit may then be exceeded by what was released.
 *
 * Throws GatewayError 404 for a process that holds nothing, and 409 for one that shows itself unless `force` is set.
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
      throw new GatewayError('not_found', `no process ${processId} holds a lease`, { status: 404 });
    }
    if (!force && stateOf(row, now) === 'live') {
      throw new GatewayError(
        'invalid_request',
        `process ${processId} showed itself within the last ${GONE_MS / 1000} s; its leases are in use`,
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
  return { id, host: null, place: null, seenAt: null, replayedAt: null, releasedAt: null, openRequests: null };
}

/** Enters in the audit log that a released process came back and its rows were entered: a limit may be exceeded. */
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
