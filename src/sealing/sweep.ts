/**
 * Re-encrypts values with the newest key of their purpose. Each row is replaced as a whole and older keys stay, so
 * every row can be decrypted at any time, even if a process dies. Several processes share the work.
 */
import type { Clock, Timer } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { Changes, Database } from '../storage/database.ts';
import { SealingError } from './record.ts';
import { SEALING_TOPIC, type Sealing } from './sealing.ts';
import type { SealedRows } from './store.ts';

export interface SweepParts {
  database: Database;
  sealing: Sealing;
  rows: readonly SealedRows[];
  log: Log;
}

const BATCH = 100;
/** A value encrypted before a new key was created may be stored only after the following sweep. */
const AGAIN_MS = 60_000;

export interface Swept {
  resealed: number;
  /** Values that cannot be decrypted; they stay as they are. */
  unreadable: number;
  /** Values that still use older keys: unreadable ones, and those that other processes are working on. */
  left: number;
}

export async function sweep(parts: SweepParts): Promise<Swept> {
  let [resealed, unreadable] = [0, 0];
  for (const rows of parts.rows) {
    const box = await parts.sealing.find(rows.purpose);
    if (box === undefined) continue;
    let after: string | null = null;
    for (;;) {
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

/** Sweeps at startup, after every new key, and once more a while later. */
export class Sweeper {
  readonly #parts: SweepParts & { clock: Clock };
  #running: Promise<void> | undefined;
  #wanted = false;
  #again: Timer | undefined;
  #closed = false;

  constructor(parts: SweepParts & { clock: Clock; changes: Pick<Changes, 'subscribe'> }) {
    this.#parts = parts;
    parts.changes.subscribe(SEALING_TOPIC, () => {
      parts.sealing.forget();
      this.start();
    });
  }

  /** Does not wait for the sweep. */
  start(): void {
    this.#soon();
    this.#again?.cancel();
    this.#again = this.#parts.clock.timer(AGAIN_MS, () => this.#soon());
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#again?.cancel();
    await this.#running;
  }

  #soon(): void {
    this.#wanted = true;
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
    });
  }

  async #run(): Promise<void> {
    const { log } = this.#parts;
    while (this.#wanted && !this.#closed) {
      this.#wanted = false;
      try {
        const { resealed } = await sweep(this.#parts);
        if (resealed > 0) log.info('values were re-encrypted with a newer key', { count: resealed });
      } catch (error) {
        if (!this.#closed) log.warn('values with older keys cannot be re-encrypted', { error });
      }
    }
  }
}
