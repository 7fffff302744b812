/** The background jobs of batches. */
import type { Job, JobKind, Jobs } from '../jobs/index.ts';
import type { Queryable } from '../storage/database.ts';
import { begin, conclude } from './conclude.ts';
import { deleteItems } from './items.sql.ts';
import { type NativeParts, nativeJobs, planNative } from './native/index.ts';
import { BatchRun, type RunParts } from './run.ts';
import * as store from './store.ts';

/** Batches that one process works on at the same time. */
const BATCHES_AT_ONCE = 4;
/** Longer than a turn and the longest request. */
const LONGEST_SECONDS = 3_600;
/** A large batch is shared by several processes: one more for so many items. */
const ITEMS_PER_SHARE = 500;
const MOST_SHARES = 4;
/** Items are looked at again at least this often. */
const LONGEST_LOOK_SECONDS = 60;

const TIDY_MS = 60_000;
const FORGOTTEN_MS = 600_000;
const DAY_MS = 24 * 3_600_000;
/** How long inputs and results are kept. */
const RETENTION_MS = 30 * DAY_MS;
const PURGED_AT_ONCE = 100;

interface BatchJob {
  id?: string;
}

export interface BatchJobs {
  kinds: readonly JobKind<BatchJob>[];
  /** Starts the work on a batch when `tx` commits. */
  start(tx: Queryable, id: string, total: number): Promise<void>;
}

export function batchJobs(parts: NativeParts, jobs: Pick<Jobs, 'send'>): BatchJobs {
  const native = nativeJobs(parts, jobs, (tx, id) => jobs.send(run, { id }, { tx }));
  const run: JobKind<BatchJob> = {
    name: 'batches.run',
    runs: 'many',
    concurrency: BATCHES_AT_ONCE,
    expireSeconds: LONGEST_SECONDS,
    pollSeconds: 1,
    async run({ data: { id }, signal }: Job<BatchJob>) {
      if (id === undefined) return;
      const batch = await begin(parts, id);
      if (batch === undefined) return;
      if (batch.state === 'cancelling') await native.wake(id);
      if (batch.state === 'in_progress') {
        const pauseMs = await planNative(batch, parts, native.start, signal);
        if (pauseMs !== undefined) {
          await jobs.send(run, { id }, { afterSeconds: Math.ceil(pauseMs / 1000) });
          return;
        }
        await new BatchRun(batch, parts, signal).run();
      }
      signal.throwIfAborted();
      const conclusion = await conclude(parts, id);
      if (conclusion === 'over') return;
      const afterSeconds = Math.min(LONGEST_LOOK_SECONDS, Math.ceil(conclusion.lookAfterMs / 1000));
      await jobs.send(run, { id }, { afterSeconds });
    },
  };
  return {
    kinds: [run, native.kind, tidyJob(parts, (id) => jobs.send(run, { id }), native.wakeForgotten)],
    async start(tx, id, total) {
      const shares = Math.min(MOST_SHARES, 1 + Math.floor(total / ITEMS_PER_SHARE));
      for (let share = 0; share < shares; share += 1) await jobs.send(run, { id }, { tx });
    },
  };
}

/** Removes what is no longer kept, and wakes up batches whose job was lost. */
function tidyJob(
  parts: RunParts,
  wake: (id: string) => Promise<void>,
  wakeNative: () => Promise<void>,
): JobKind<BatchJob> {
  return {
    name: 'batches.tidy',
    runs: 'one',
    retries: 0,
    everyMs: TIDY_MS,
    atStart: true,
    async run({ signal }) {
      const { database, clock } = parts;
      const now = clock.now();
      for (const id of await store.abandonedIntakes(database, new Date(now - DAY_MS))) await removeItems(parts, id);
      for (const id of await store.purgeableBatches(database, new Date(now - RETENTION_MS), PURGED_AT_ONCE)) {
        signal.throwIfAborted();
        await deleteItems(parts.database, id);
        await store.markPurged(database, id, new Date(now));
      }
      // Jobs are lost with a restored database, or after too many failures. One too many does no harm.
      for (const id of await store.forgottenBatches(database, new Date(now - FORGOTTEN_MS), new Date(now)))
        await wake(id);
      await wakeNative();
    },
  };
}

/** Removes the items of a batch that never came to be. */
export function removeItems({ database }: Pick<RunParts, 'database'>, batchId: string): Promise<void> {
  return database.transaction(async (tx) => {
    // The connection may have been lost while the batch was inserted; then it exists, and its intake does not.
    if (!(await store.endIntake(tx, batchId))) return;
    await deleteItems(tx, batchId);
  });
}
