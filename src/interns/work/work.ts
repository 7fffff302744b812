/**
 * Background work of requests: starts and deletes interns. A job only announces work. Its handler reads the intern's
 * row to find what to do, so a job that runs twice, or in another process than before, does no harm.
 */
import { type Changed, changeAs, gatewayAuthor } from '../../audit/index.ts';
import type { Clock } from '../../base/clock.ts';
import { GatewayError } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Changes, Database, Queryable } from '../../storage/database.ts';
import { DatabaseUnavailable } from '../../storage/unavailable.ts';
import { applyEvent, type EventFacts } from '../change-intern.ts';
import type { Intern } from '../intern.ts';
import type { LifecycleEvent } from '../lifecycle.ts';
import * as store from '../store.ts';
import { type AgentHost, STEP_COUNT } from './agent-host.ts';
import type { Holders } from './holders.ts';

export interface WorkParts {
  database: Database;
  changes: Pick<Changes, 'announce'>;
  clock: Clock;
  log: Log;
  holders: Holders;
  host: AgentHost;
  teardown(intern: Intern): Promise<Teardown>;
  /** Interns that this process works on, until when. */
  atWork: Map<string, Promise<void>>;
}

/** What happens with the last change of a deleted intern. */
export interface Teardown {
  /** Why it failed; undefined: it is done. */
  problem?: string;
  /** In the transaction that deletes the intern. */
  finish(tx: Queryable, changed: Changed, at: Date): Promise<void>;
}

/** Does the pending work of the intern. Throws if another process holds it or this one closes; then it is retried. */
export async function work(parts: WorkParts, id: string, signal: AbortSignal): Promise<void> {
  const { atWork } = parts;
  // Several jobs may be for one intern: of later requests, and repeated ones. They run in turn, and each finds what is left to do.
  const own = (atWork.get(id) ?? Promise.resolve()).then(() => advance(parts, id, signal));
  const settled = own.catch(() => {});
  atWork.set(id, settled);
  try {
    await own;
  } finally {
    if (atWork.get(id) === settled) atWork.delete(id);
  }
}

async function advance(parts: WorkParts, id: string, signal: AbortSignal): Promise<void> {
  const intern = await store.internWithId(parts.database, id);
  if (intern === undefined || !['queued', 'provisioning', 'destroying'].includes(intern.status)) return;
  const holder = await parts.holders.take(id);
  if (holder !== undefined) {
    // It starts there already.
    if (intern.status === 'provisioning') return;
    throw new Error(`intern ${id} is still held by process ${holder}`);
  }
  if (intern.status === 'destroying') await destroy(parts, intern, signal);
  else await provision(parts, intern, signal);
}

async function provision(parts: WorkParts, queued: Intern, signal: AbortSignal): Promise<void> {
  const { host, holders, log } = parts;
  const intern = await happened(parts, queued, 'taken', {});
  if (intern?.status !== 'provisioning') return;
  try {
    await host.agentOf(intern, (label, step) => {
      const progress = { step_label: label, step_number: step, total_steps: STEP_COUNT };
      return store.updateProgress(parts.database, { ...intern, progress });
    });
  } catch (error) {
    await host.stop(intern.id);
    await holders.release(intern.id);
    // The next start continues, and the next attempt when the database is back.
    if (signal.aborted || error instanceof DatabaseUnavailable) throw error;
    log.warn('an intern could not be started', { intern: intern.id, error });
    await happened(parts, intern, 'provision_failed', { lastFailureMessage: messageOf(error) });
    return;
  }
  const running = await happened(parts, intern, 'provisioned', { hostname: hostnameOf(intern) });
  if (running?.status === 'running' && running.epoch === intern.epoch) return;
  // It was deleted meanwhile.
  await host.stop(intern.id);
  await holders.release(intern.id);
}

async function destroy(parts: WorkParts, intern: Intern, signal: AbortSignal): Promise<void> {
  const { host, holders, teardown } = parts;
  await host.stop(intern.id);
  try {
    const { problem, finish } = await teardown(intern);
    if (problem === undefined) await happened(parts, intern, 'destroyed', {}, finish);
    else if (!signal.aborted) await happened(parts, intern, 'teardown_failed', { lastFailureMessage: problem });
  } finally {
    await holders.release(intern.id);
  }
}

/**
 * Records the outcome of work that began in the epoch of `intern`, unless a later request overtook it.
 * @returns the intern now; undefined if it is gone, or was
 */
async function happened(
  { database, changes, clock }: WorkParts,
  { id, epoch, organizationId }: Intern,
  event: LifecycleEvent,
  facts: Omit<EventFacts, 'at'>,
  also?: Teardown['finish'],
): Promise<Intern | undefined> {
  const at = new Date(clock.now());
  return changeAs(gatewayAuthor(organizationId, at.getTime()), { database, changes }, async (tx, changed) => {
    const intern = await store.lockIntern(tx, id);
    if (intern === undefined || intern.epoch !== epoch) return intern;
    const next = await applyEvent(tx, changed, intern, event, { ...facts, at });
    if (next !== intern) await also?.(tx, changed, at);
    return event === 'destroyed' ? undefined : next;
  });
}

/** A running intern that cannot be started again. */
export async function broke(parts: WorkParts, intern: Intern, error: unknown): Promise<void> {
  await happened(parts, intern, 'broken', { lastFailureMessage: messageOf(error) });
}

/** The part of a failure that a caller may see. */
export function messageOf(error: unknown): string {
  return error instanceof GatewayError ? error.message : 'Internal error; see the log of the gateway.';
}

function hostnameOf({ name, id }: Intern): string {
  return `${name}-${id.slice(-12)}.interns.internal`;
}
