/**
 * Runs sync jobs in the background, one at a time per installation. The table `scim_sync_jobs` lists the work; a
 * background job only wakes up a process to look there.
 */
import type { Clock } from '../../base/clock.ts';
import type { ScimSource } from '../../base/config.ts';
import { GatewayError } from '../../base/errors.ts';
import { type Log, redact } from '../../base/log.ts';
import type { Egress } from '../../egress/index.ts';
import type { JobKind } from '../../jobs/index.ts';
import type { Changes, Database, Queryable } from '../../storage/database.ts';
import { type Counts, recompute, takeDirectory } from './apply.ts';
import { readDirectory, SourceError } from './source.ts';
import * as store from './store.ts';

export interface SyncParts {
  database: Database;
  /** Shared with the requests that write to SCIM. */
  writer: Database;
  changes: Changes;
  egress: Egress;
  clock: Clock;
  log: Log;
  /** The current configuration; null if no directory is configured. */
  source(): ScimSource | null;
}

const MAX_ATTEMPTS = 3;
/** A directory of many thousands of users is read page by page. */
const LONGEST_SECONDS = 6 * 3600;
/** The sync job stays queued through an outage of the database, or while another process holds the lock. */
const RETRIES = 1_000;

export function syncJob(parts: SyncParts): JobKind {
  return {
    name: 'scim.sync',
    runs: 'one',
    expireSeconds: LONGEST_SECONDS,
    retries: RETRIES,
    atStart: true,
    async run({ signal }) {
      for (;;) {
        signal.throwIfAborted();
        const found = await parts.database.transaction((tx) => runOldest(parts, tx, signal));
        if (found === 'none') return;
        if (found === 'busy') throw new Error('another process is still running sync jobs');
      }
    },
  };
}

/** @param tx holds the lock, because a process that the job runner considers dead may still be working */
async function runOldest(parts: SyncParts, tx: Queryable, signal: AbortSignal): Promise<'done' | 'none' | 'busy'> {
  const { database, clock } = parts;
  // Most wake-ups find nothing to do and take no lock.
  if (!(await store.oldestUnfinished(tx))) return 'none';
  if (!(await store.takeTurn(tx))) return 'busy';
  // The previous holder of the lock may have finished the job.
  const job = await store.oldestUnfinished(tx);
  if (!job) return 'none';
  const now = () => new Date(clock.now());
  if (job.attempts >= MAX_ATTEMPTS) {
    const errorMessage = `the job was interrupted ${job.attempts} times`;
    await store.endJob(database, job.id, { syncedGroups: null, deletedGroups: null, errorMessage }, now());
    return 'done';
  }
  await store.beginJob(database, job.id, now());
  const outcome = await outcomeOf(parts, job, tx, signal);
  await store.endJob(database, job.id, outcome, now());
  return 'done';
}

/** Throws for a temporary cause: the sync job is then retried. */
async function outcomeOf(
  parts: SyncParts,
  job: store.StoredJob,
  tx: Queryable,
  signal: AbortSignal,
): Promise<store.Outcome> {
  try {
    return { ...(await synchronize(parts, job, () => store.checkTurn(tx), signal)), errorMessage: null };
  } catch (error) {
    const passing = error instanceof GatewayError && error.status >= 500;
    if (signal.aborted || passing) throw error;
    const known = error instanceof SourceError || error instanceof GatewayError;
    if (!known) parts.log.error('sync job failed', { job: job.id, error });
    const errorMessage = known ? error.message : 'internal error';
    return { syncedGroups: null, deletedGroups: null, errorMessage };
  }
}

async function synchronize(
  { writer, changes, clock, egress, ...parts }: SyncParts,
  { organizationId }: store.StoredJob,
  proceed: () => Promise<void>,
  signal: AbortSignal,
): Promise<Counts> {
  const apply = { database: writer, changes, clock, organizationId };
  const source = parts.source();
  if (source === null) return recompute(apply);
  redact(source.token.reveal());
  const directory = await readDirectory({ egress, source, signal, proceed });
  return takeDirectory(apply, directory);
}
