/** The background job that tidies up. */
import type { JobKind } from '../jobs/index.ts';
import { deleteItems } from './items.sql.ts';
import type { RunParts } from './running/run.ts';
import * as store from './store.ts';

const TIDY_MS = 60_000;
const DAY_MS = 24 * 3_600_000;
/** How long inputs and results are kept. */
const RETENTION_MS = 30 * DAY_MS;
const PURGED_AT_ONCE = 100;

/** Removes batches after the retention, and continues work whose job was lost. */
export function tidyJob(
  parts: Pick<RunParts, 'database' | 'clock'>,
  others: readonly { wakeForgotten(): Promise<void> }[],
): JobKind {
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
      for (const other of others) await other.wakeForgotten();
    },
  };
}

/** Removes the items of a batch whose submission failed. */
export function removeItems({ database }: Pick<RunParts, 'database'>, batchId: string): Promise<void> {
  return database.transaction(async (tx) => {
    // The connection may have been lost while the batch was inserted; then it exists, and its intake does not.
    if (!(await store.endIntake(tx, batchId))) return;
    await deleteItems(tx, batchId);
  });
}
