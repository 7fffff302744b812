/**
 * Puts values that are sealed under older keys of their purpose under the newest one. Every row is replaced as a whole and
 * older keys stay, so that each row opens at any time, whoever dies meanwhile. Several processes share the work.
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
/** A value may have been sealed before a new key was made, and be stored after the sweep that followed. */
const AGAIN_MS = 60_000;

export interface Swept {
  resealed: number;
  /** That cannot be opened, and so stay. */
  unreadable: number;
  /** Under older keys still: these, and what other processes are at. */
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

/** How many values are sealed under older keys of their purposes. */
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
        log.error('a sealed value cannot be opened and stays as it is', { purpose: rows.purpose, id, error });
      }
    }
    const last = batch.at(-1)?.id;
    return last === undefined ? undefined : { resealed, unreadable: batch.length - resealed, last };
  });
}

/** Sweeps at the start, whenever a key was made, and once more a while later. */
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

  /** Does not wait for anything. */
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
        if (resealed > 0) log.info('values were sealed under a newer key', { count: resealed });
      } catch (error) {
        if (!this.#closed) log.warn('values under older keys cannot be sealed anew', { error });
      }
    }
  }
}
