/**
 * The path of settled rows: journal, memory, database. Each batch of rows is one transaction, together with the
 * counters and leases that it changes. While the database is down rows stay in the journal. Memory holds a bounded
 * number of them; the others are read back from the journal when the database returns.
 */
import type { Clock, Timer } from '../base/clock.ts';
import { GatewayError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { Database } from '../storage/database.ts';
import type { GroupCommit } from './group-commit.ts';
import type { Journal, Segment } from './journal.ts';
import type { Leases } from './leases.ts';
import { addPartitions, isPartitionMissing } from './partitions/store.ts';
import { decodeSettled, type Entry, encodeSettled, settledHead } from './record.ts';
import { scanSegment } from './scan.ts';
import { enterGenerations } from './store.ts';

export interface LedgerLimits {
  /** Maximum rows per transaction. */
  batchRows: number;
  /** Time that the first row of a batch waits for others. */
  flushMs: number;
  /** Maximum rows in memory; further ones are in the journal only. */
  memoryRows: number;
  /** Journal size at which new requests are refused. */
  journalBytes: number;
}

export const LEDGER_LIMITS: LedgerLimits = {
  batchRows: 1_000,
  flushMs: 100,
  memoryRows: 20_000,
  journalBytes: 1024 * 1024 * 1024,
};

/** Time within which settled rows are in the database, as long as the database keeps up. */
export const ENTERED_WITHIN_MS = 2 * LEDGER_LIMITS.flushMs;

interface LedgerParts {
  database: Database;
  processId: string;
  journal: Journal;
  commits: GroupCommit;
  leases: Leases;
  clock: Clock;
  log: Log;
  limits: LedgerLimits;
}

interface Pending extends Entry {
  /** The segment of its record; undefined if journalling failed. */
  segment: Segment | undefined;
}

/** A position in the journal. */
interface JournalPosition {
  segment: number;
  offset: number;
}

const RETRY_MS = 500;

export class Ledger {
  readonly #parts: LedgerParts;
  #queue: Pending[] = [];
  /** From this position on, the settled records of the journal are not in memory. */
  #spilled: JournalPosition | undefined;
  #timer: Timer | undefined;
  #flushing: Promise<boolean> | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #failing = false;
  /** From the first failure until rows reach the database again, so that retries are not logged. */
  #isBehind = false;

  constructor(parts: LedgerParts) {
    this.#parts = parts;
  }

  /** True if nothing waits for the database. */
  get empty(): boolean {
    return this.#queue.length === 0 && this.#spilled === undefined;
  }

  /** Number of rows in memory that are not in the database. */
  get waiting(): number {
    return this.#queue.length;
  }

  /** Throws GatewayError 503 if so much waits for the database that new requests must be refused. */
  checkRoom(): void {
    const { journal, limits } = this.#parts;
    if (journal.bytes < limits.journalBytes) return;
    throw new GatewayError('server', 'the journal is full because the database has been unavailable for too long', {
      status: 503,
      retryAfterSeconds: 5,
      metadata: { retryable: true },
    });
  }

  /** @param written called once the row is journaled, at the latest at the end of this event loop turn */
  settle(entry: Entry, written: () => void): void {
    this.#parts.commits.settled(settledHead(entry), entry.row, (segment, offset) => {
      if (segment !== undefined && this.#full) this.#spill({ segment: segment.number, offset });
      else this.#keep(entry, segment);
      written();
    });
  }

  /** Rows read back from the journal come after those in memory, so keep none in memory until that is done. */
  get #full(): boolean {
    return this.#spilled !== undefined || this.#queue.length >= this.#parts.limits.memoryRows;
  }

  #keep({ id, row, taken }: Entry, segment: Segment | undefined): void {
    const { limits } = this.#parts;
    this.#queue.push({ id, row, taken, segment });
    if (this.#queue.length === limits.batchRows) this.#schedule(0);
    else if (this.#timer === undefined) this.#schedule(limits.flushMs);
  }

  #spill(position: JournalPosition): void {
    this.#spilled ??= position;
    if (this.#timer === undefined) this.#schedule(this.#parts.limits.flushMs);
  }

  /** JSON of a row that is in memory but not in the database yet. */
  waitingRow(id: string): string | undefined {
    this.#parts.commits.commit();
    // Lookups are rare and every request enters a row, so a linear search is cheaper than an index.
    return this.#queue.find((pending) => pending.id === id)?.row;
  }

  /** Runs `work` after all earlier work that moves leases, so that database and process agree on them. */
  inOrder<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => {});
    return result;
  }

  /** Enters everything settled before the call; returns false if the database failed. */
  async flush(): Promise<boolean> {
    this.#parts.commits.commit();
    while (!this.empty) {
      if (!(await this.#run())) return false;
    }
    return true;
  }

  /** Stops retrying. Waiting rows stay in the journal. */
  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #schedule(delayMs: number): void {
    if (this.#flushing !== undefined || this.#failing) return;
    this.#timer?.cancel();
    this.#timer = this.#parts.clock.timer(delayMs, () => {
      this.#timer = undefined;
      this.#failing = false;
      void this.#run();
    });
  }

  /** One run at a time: first the rows in memory, then those in the journal only. */
  #run(): Promise<boolean> {
    this.#flushing ??= this.#flushOnce().then((done) => {
      this.#flushing = undefined;
      if (!this.empty) this.#schedule(done ? this.#parts.limits.flushMs : RETRY_MS);
      this.#failing = !done;
      return done;
    });
    return this.#flushing;
  }

  async #flushOnce(): Promise<boolean> {
    try {
      for (let rest = this.#queue.length; rest > 0; ) {
        const batch = this.#queue.slice(0, Math.min(rest, this.#parts.limits.batchRows));
        await this.#enter(batch);
        this.#queue.splice(0, batch.length);
        rest -= batch.length;
        for (const pending of batch) {
          if (pending.segment !== undefined) this.#parts.journal.release(pending.segment);
        }
      }
      while (this.#queue.length === 0 && this.#spilled !== undefined) await this.#flushSpilled(this.#spilled);
      return true;
    } catch (error) {
      this.#failed(error);
      return false;
    }
  }

  async #flushSpilled(from: JournalPosition): Promise<void> {
    const { journal } = this.#parts;
    const segment = journal.segments.get(from.segment);
    let offset = from.offset;
    if (segment !== undefined) {
      for await (const chunk of scanSegment(segment.path, from.offset, segment.end)) {
        offset = chunk.end;
        const entries = chunk.records
          .filter((record) => record.kind === 'S')
          .map((record) => decodeSettled(record.json));
        if (entries.length === 0) continue;
        await this.#enter(entries);
        for (const _ of entries) journal.release(segment);
        break;
      }
      if (offset < segment.end && offset > from.offset) {
        this.#spilled = { segment: segment.number, offset };
        return;
      }
    }
    const next = [...journal.segments.keys()].find((number) => number > from.segment);
    this.#spilled = next === undefined ? undefined : { segment: next, offset: 0 };
  }

  async #enter(entries: readonly Entry[]): Promise<void> {
    const { database, processId, leases, log } = this.#parts;
    await this.inOrder(async () => {
      const lost = await enterBatch(database, processId, entries, log);
      for (const entry of entries) leases.entered(entry.taken, lost);
    });
    this.#failing = false;
    this.#isBehind = false;
  }

  #failed(error: unknown): void {
    const { journal, log } = this.#parts;
    if (!this.#isBehind) log.warn('rows are waiting in the journal', { rows: this.#queue.length, error });
    this.#isBehind = true;
    for (const pending of this.#queue.filter(({ segment }) => segment === undefined)) {
      const segment = journal.appendAnyway('S', encodeSettled(pending));
      if (segment === undefined) return;
      // Rows after the spilled position are read back from the journal too.
      if (this.#spilled === undefined) pending.segment = segment;
      else this.#queue.splice(this.#queue.indexOf(pending), 1);
    }
  }
}

/**
 * Enters rows, retrying if needed. A row that PostgreSQL refuses for its content is logged and skipped, so that it does
 * not block the others: its cost stays held in the leases.
 */
export async function enterBatch(
  database: Database,
  processId: string,
  entries: readonly Entry[],
  log: Log,
): Promise<string[]> {
  try {
    return await enterOnce(database, processId, entries);
  } catch (error) {
    if (!isRowsFault(error)) throw error;
    if (entries.length === 1) {
      log.error('the database refused a row', { generation: entries[0]?.id, error });
      return [];
    }
    const half = entries.length >> 1;
    const first = await enterBatch(database, processId, entries.slice(0, half), log);
    return first.concat(await enterBatch(database, processId, entries.slice(half), log));
  }
}

/** Creates the table of a month if its first row finds none: no row may wait for a background job. */
async function enterOnce(database: Database, processId: string, entries: readonly Entry[]): Promise<string[]> {
  const enter = () => database.transaction((tx) => enterGenerations(tx, processId, entries));
  try {
    return await enter();
  } catch (error) {
    if (!isPartitionMissing(error)) throw error;
    await addPartitions(database, new Set(entries.map(({ row }) => monthOf(row))));
    return enter();
  }
}

const CREATED_AT = '"created_at":"';

/** The month of a row's JSON as `2026-11`; its time is UTC. */
function monthOf(row: string): string {
  const at = row.indexOf(CREATED_AT) + CREATED_AT.length;
  return row.slice(at, at + 7);
}

/** SQLSTATE classes 22 (data exception) and 23 (constraint violation). */
function isRowsFault(error: unknown): boolean {
  const code = (error as { code?: unknown }).code;
  return typeof code === 'string' && /^2[23]...$/.test(code);
}
