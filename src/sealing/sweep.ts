/**
 * Re-encrypts values with the newest key of their purpose. Each row is replaced as a whole and older keys stay, so
 * every row can be decrypted at any time, even if a process dies. Several processes share the work.
 */
import type { Log } from '../base/log.ts';
import type { JobKind } from '../jobs/index.ts';
import type { Changes, Database } from '../storage/database.ts';
import { SealingError } from './record.ts';
import { SEALING_TOPIC, type Sealing } from './sealing.ts';
import type { SealedRows } from './store.ts';

interface SweepParts {
  database: Database;
  sealing: Sealing;
  rows: readonly SealedRows[];
  log: Log;
}

const BATCH = 100;
/** A value encrypted before a new key was created may be stored only after the sweep for that key. */
const SWEEP_MS = 600_000;

interface Swept {
  resealed: number;
  /** Values that cannot be decrypted; they stay as they are. */
  unreadable: number;
  /** Values that still use older keys: unreadable ones, and those that other processes are working on. */
  left: number;
}

/** Rejects with the reason of `signal` when that is aborted; the batches before it stay. */
export async function sweep(parts: SweepParts, signal?: AbortSignal): Promise<Swept> {
  let [resealed, unreadable] = [0, 0];
  for (const rows of parts.rows) {
    const box = await parts.sealing.find(rows.purpose);
    if (box === undefined) continue;
    let after: string | null = null;
    for (;;) {
      signal?.throwIfAborted();
      const batch = await sweepBatch(parts, rows, box.header, after);
      if (batch === undefined) break;
      resealed += batch.resealed;
      unreadable += batch.unreadable;
      after = batch.last;
    }
  }
  return { resealed, unreadable, left: await countOutdated(parts) };
}

/** Number of values encrypted with older keys of their purposes. */
export async function countOutdated({ database, sealing, rows }: Omit<SweepParts, 'log'>): Promise<number> {
  let count = 0;
  for (const each of rows) {
    const box = await sealing.find(each.purpose);
    if (box !== undefined) count += await each.countOutdated(database, box.header);
  }
  return count;
}

async function sweepBatch(
  { database, sealing, log }: SweepParts,
  rows: SealedRows,
  header: Buffer,
  after: string | null,
): Promise<{ resealed: number; unreadable: number; last: string } | undefined> {
  return database.transaction(async (tx) => {
    const batch = await rows.outdated(tx, header, after, BATCH);
    const records = batch.map(({ sealed }) => sealed);
    const box = await sealing.find(rows.purpose, records, tx);
    if (box === undefined) return undefined;
    let resealed = 0;
    for (const { id, sealed } of batch) {
      try {
        await rows.replace(tx, id, box.seal(id, rows.column, box.open(id, rows.column, sealed)));
        resealed += 1;
      } catch (error) {
        if (!(error instanceof SealingError)) throw error;
        log.error('an encrypted value cannot be decrypted and stays as it is', { purpose: rows.purpose, id, error });
      }
    }
    const last = batch.at(-1)?.id;
    return last === undefined ? undefined : { resealed, unreadable: batch.length - resealed, last };
  });
}

/** Sweeps when a process starts, after each new key (`followNewKeys`), and at intervals. */
export function sweepJob(parts: SweepParts): JobKind {
  return {
    name: 'sealing.sweep',
    runs: 'one',
    retries: 0,
    everyMs: SWEEP_MS,
    atStart: true,
    async run({ signal }) {
      // This process may not have been notified of the new key yet.
      parts.sealing.forget();
      const { resealed } = await sweep(parts, signal);
      if (resealed > 0) parts.log.info('values were re-encrypted with a newer key', { count: resealed });
    },
  };
}

/** Encrypts with a new key once it is announced, and has older values re-encrypted. */
export function followNewKeys(
  changes: Pick<Changes, 'subscribe'>,
  sealing: Pick<Sealing, 'forget'>,
  sweepSoon: () => void,
): void {
  changes.subscribe(SEALING_TOPIC, () => {
    sealing.forget();
    sweepSoon();
  });
}
