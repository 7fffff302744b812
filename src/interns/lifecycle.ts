/** The states of an intern, as one table: what happens to each state at each event. No I/O. */

export const STATUSES = [
  'awaiting_chatapp_install',
  'queued',
  'provisioning',
  'running',
  'failed',
  'stopped',
  'destroying',
  'destroy_failed',
] as const;

/** `awaiting_chatapp_install` is a name of the interface; no intern here enters it. */
type Status = (typeof STATUSES)[number];

/** States that an intern can be in. */
export type LiveStatus = Exclude<Status, 'awaiting_chatapp_install'>;

/**
 * Requests of callers, then what happens to the work that they start:
 *  - `taken`: a process begins to provision, or begins again after the process that did has died
 *  - `provisioned`, `provision_failed`: the end of that
 *  - `broken`: a running intern's sandbox or agent cannot be started again
 *  - `destroyed`, `teardown_failed`: the end of a teardown
 */
export const EVENTS = [
  'provision',
  'suspend',
  'delete',
  'update',
  'taken',
  'provisioned',
  'provision_failed',
  'broken',
  'destroyed',
  'teardown_failed',
] as const;

export type LifecycleEvent = (typeof EVENTS)[number];

/**
 * `same`: accepted, and nothing changes. `busy`: refused, because other work holds the intern. `stale`: the outcome of work
 * that a later request overtook; the process that reports it ignores that. `gone`: the intern no longer exists.
 */
type Step = LiveStatus | 'same' | 'busy' | 'stale' | 'gone';

const FINISHED_WORK = {
  taken: 'stale',
  provisioned: 'stale',
  provision_failed: 'stale',
  broken: 'stale',
  destroyed: 'stale',
  teardown_failed: 'stale',
} as const;

export const LIFECYCLE: Readonly<Record<LiveStatus, Readonly<Record<LifecycleEvent, Step>>>> = {
  stopped: { ...FINISHED_WORK, provision: 'queued', suspend: 'same', delete: 'destroying', update: 'same' },
  failed: { ...FINISHED_WORK, provision: 'queued', suspend: 'same', delete: 'destroying', update: 'same' },
  queued: {
    ...{ ...FINISHED_WORK, provision: 'same', suspend: 'busy', delete: 'destroying', update: 'same' },
    taken: 'provisioning',
  },
  provisioning: {
    ...{ ...FINISHED_WORK, provision: 'same', suspend: 'busy', delete: 'destroying', update: 'same' },
    ...{ taken: 'provisioning', provisioned: 'running', provision_failed: 'failed' },
  },
  running: {
    ...{ ...FINISHED_WORK, provision: 'same', suspend: 'stopped', delete: 'destroying', update: 'same' },
    broken: 'failed',
  },
  destroying: {
    ...{ ...FINISHED_WORK, provision: 'busy', suspend: 'busy', delete: 'same', update: 'busy' },
    ...{ destroyed: 'gone', teardown_failed: 'destroy_failed' },
  },
  destroy_failed: { ...FINISHED_WORK, provision: 'busy', suspend: 'busy', delete: 'destroying', update: 'busy' },
};

/** The beginning of a new intern. */
export function firstStatus(provision: boolean): LiveStatus {
  return provision ? 'queued' : 'stopped';
}
