/** Changes of existing interns: settings, and the events of `lifecycle.ts`. */
import { type AnnouncedChange, type Author, type Changed, changeAs } from '../audit/index.ts';
import type { Clock } from '../base/clock.ts';
import type { GatewayError } from '../base/errors.ts';
import type { Sealing } from '../sealing/index.ts';
import type { Changes, Database, Queryable } from '../storage/database.ts';
import { internError } from './errors.ts';
import { type Intern, internReply } from './intern.ts';
import { LIFECYCLE, type LifecycleEvent } from './lifecycle.ts';
import type { UpdateIntern } from './schema.ts';
import * as store from './store.ts';

/** Announced with the id of an intern when its state or settings change. */
export const INTERNS_TOPIC = 'interns';

export interface ChangeParts {
  database: Database;
  changes: Pick<Changes, 'announce'>;
  clock: Clock;
  sealing: Sealing;
  /** Call it in the transaction that leaves work to do: some process then looks for that work. */
  wake(tx: Queryable, intern: Pick<Intern, 'id'>): Promise<void>;
}

/** The changes of an event besides the next state. */
export interface EventFacts extends Partial<Pick<Intern, 'hostname' | 'lastFailureMessage' | 'lossAcknowledged'>> {
  at: Date;
}

/** The entry of each event in the audit log. */
const VERBS: Partial<Record<LifecycleEvent, string>> = {
  provision: 'provision_requested',
  suspend: 'suspended',
  delete: 'deletion_requested',
  provisioned: 'started',
  provision_failed: 'failed',
  broken: 'failed',
  destroyed: 'deleted',
  teardown_failed: 'deletion_failed',
};

/** Events after which work that began earlier is out of date. */
const NEW_EPOCH: ReadonlySet<LifecycleEvent> = new Set(['provision', 'suspend', 'delete', 'taken']);

/**
 * Applies an event to a locked intern, with its audit entry.
 *
 * @returns the intern after it; unchanged for an event that changes nothing or is out of date
 * @throws GatewayError 409 if other work holds the intern
 */
export async function applyEvent(
  tx: Queryable,
  changed: Changed,
  intern: Intern,
  event: LifecycleEvent,
  facts: EventFacts,
): Promise<Intern> {
  // The teardown that runs may fail for what is acknowledged now, so it is out of date.
  const isAcknowledged = event === 'delete' && facts.lossAcknowledged === true && !intern.lossAcknowledged;
  const step = isAcknowledged ? 'destroying' : LIFECYCLE[intern.status][event];
  if (step === 'busy') throw internBusy(intern);
  if (step === 'same' || step === 'stale') return intern;
  const { at, ...rest } = facts;
  const next: Intern = {
    ...{ ...intern, ...rest },
    status: step === 'gone' ? intern.status : step,
    epoch: intern.epoch + (NEW_EPOCH.has(event) ? 1 : 0),
    progress: step === 'provisioning' ? intern.progress : null,
    lastFailureMessage: rest.lastFailureMessage ?? null,
    provisionedAt: step === 'running' ? (intern.provisionedAt ?? at) : intern.provisionedAt,
    updatedAt: at,
  };
  if (step === 'gone') await store.deleteIntern(tx, intern.id);
  else await store.updateLife(tx, next);
  const verb = VERBS[event];
  if (verb !== undefined) await changed(internChange(verb, intern, step === 'gone' ? undefined : next));
  return next;
}

function internBusy({ status }: Intern): GatewayError {
  const work = { queued: 'starting', provisioning: 'starting' }[status as string] ?? 'being deleted';
  return internError('intern_busy', `The intern is ${work}; this operation has to wait for that.`);
}

export function nameTaken(name: string): GatewayError {
  return internError('name_taken', `You already have an intern called ${name} in this workspace.`);
}

/** An entry of the audit log. */
export function internChange(verb: string, before: Intern | undefined, after: Intern | undefined): AnnouncedChange {
  const { id, workspaceId } = (after ?? before)!;
  return {
    action: `intern.${verb}`,
    ...{ resourceType: 'intern', resourceId: id, workspaceId },
    before: before && internReply(before),
    after: after && internReply(after),
    announce: [INTERNS_TOPIC, id],
  };
}

async function lockedIntern(tx: Queryable, id: string): Promise<Intern> {
  const intern = await store.lockIntern(tx, id);
  if (intern === undefined) throw internError('not_found', 'There is no intern with this id in the workspace.');
  return intern;
}

/** @throws GatewayError 404, 409 */
export function updateIntern(author: Author, parts: ChangeParts, id: string, body: UpdateIntern): Promise<Intern> {
  return changeAs(author, parts, async (tx, changed) => {
    const before = await lockedIntern(tx, id);
    if (LIFECYCLE[before.status].update === 'busy') throw internBusy(before);
    const after: Intern = { ...before, ...body, updatedAt: new Date(parts.clock.now()) };
    if (after.name !== before.name) {
      await store.lockCreator(tx, before);
      if ((await store.internNamed(tx, before, after.name)) !== undefined) throw nameTaken(after.name);
    }
    if (Object.keys(body).length === 0) return before;
    await store.updateSettings(tx, after);
    await changed(internChange('updated', before, after));
    return after;
  });
}

/** @throws GatewayError 404, 409 */
export function provisionIntern(author: Author, parts: ChangeParts, id: string): Promise<Intern> {
  return requested(author, parts, id, 'provision', {});
}

/** Resolves when it does not run any more. @throws GatewayError 404, 409 */
export function suspendIntern(author: Author, parts: ChangeParts, id: string): Promise<Intern> {
  return requested(author, parts, id, 'suspend', {});
}

/**
 * Its workspace is archived before it is deleted.
 * @param lossAcknowledged delete it even if that fails
 * @throws GatewayError 404
 */
export function deleteIntern(
  author: Author,
  parts: ChangeParts,
  id: string,
  lossAcknowledged: boolean,
): Promise<Intern> {
  return requested(author, parts, id, 'delete', { lossAcknowledged });
}

function requested(
  author: Author,
  parts: ChangeParts,
  id: string,
  event: 'provision' | 'suspend' | 'delete',
  facts: Partial<EventFacts>,
): Promise<Intern> {
  return changeAs(author, parts, async (tx, changed) => {
    const before = await lockedIntern(tx, id);
    const after = await applyEvent(tx, changed, before, event, { ...facts, at: new Date(parts.clock.now()) });
    if (after !== before && event !== 'suspend') await parts.wake(tx, after);
    return after;
  });
}
