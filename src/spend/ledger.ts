/**
 * The way of settled rows: journal, memory, database. Rows are entered in batches, each in one transaction with the
 * counters and leases that it moves. While the database is down they stay in the journal; memory holds a bounded number
 * of them, the rest is read back from the journal when the database returns.
 */
import type { Clock, Timer } from '../base/clock.ts';
import { GatewayError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { Database } from '../storage/database.ts';
import type { GroupCommit } from './group-commit.ts';
import type { Journal, Segment } from './journal.ts';
import type { Leases } from './leases.ts';
import { addMonths, isMonthMissing } from './months/store.ts';
import { decodeSettled, type Entry, encodeSettled, settledHead } from './record.ts';
import { scanSegment } from './scan.ts';
import { enterGenerations } from './store.ts';

export interface LedgerLimits {
  /** Rows of one transaction. */
  batchRows: number;
  /** How long the first row of a batch waits for others. */
  flushMs: number;
  /** Rows held in memory; further ones are in the journal only. */
  memoryRows: number;
  /** Size of the journal from which on nothing new is accepted. */
  journalBytes: number;
}

export const LEDGER_LIMITS: LedgerLimits = {
  batchRows: 1_000,
  flushMs: 100,
  memoryRows: 20_000,
  journalBytes: 1024 * 1024 * 1024,
};

/** Within this a process has entered what it had settled, as long as the database takes it. */
export const ENTERED_WITHIN_MS = 2 * LEDGER_LIMITS.flushMs;

export interface LedgerParts {
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
  /** Where it is journalled; undefined when that failed. */
  segment: Segment | undefined;
}

/** A place in the journal. */
interface Place {
  segment: number;
  offset: number;
}

const RETRY_MS = 500;

export class Ledger {
  readonly #parts: LedgerParts;
  #queue: Pending[] = [];
  /** From here on the settled records of the journal are not in memory. */
  #spilled: Place | undefined;
  #timer: Timer | undefined;
  #flushing: Promise<boolean> | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #failing = false;

  constructor(parts: LedgerParts) {
    this.#parts = parts;
  }

  /** Nothing waits for the database. */
  get empty(): boolean {
    return this.#queue.length === 0 && this.#spilled === undefined;
  }

  /** Rows in memory that are not in the database. */
  get waiting(): number {
    return this.#queue.length;
  }

  /** Throws GatewayError 503 when so much waits for the database that nothing more may be accepted. */
  checkRoom(): void {
    const { journal, limits } = this.#parts;
    if (journal.bytes < limits.journalBytes) return;
    throw new GatewayError('server', 'the database has been away for too long: the journal is full', {
      status: 503,
      retryAfterSeconds: 5,
      metadata: { retryable: true },
    });
  }

  /** @param written called once the row is journalled, at the end of this turn of the event loop at the latest */
  settle(entry: Entry, written: () => void): void {
    this.#parts.commits.settled(settledHead(entry), entry.row, (segment, offset) => {
      if (segment !== undefined && this.#full) this.#spill({ segment: segment.number, offset });
      else this.#keep(entry, segment);
      written();
    });
  }

  /** What is read back from the journal stands behind all that memory holds, so nothing is kept until that is done. */
  get #full(): boolean {
    return this.#spilled !== undefined || this.#queue.length >= this.#parts.limits.memoryRows;
  }

  #keep({ id, row, taken }: Entry, segment: Segment | undefined): void {
    const { limits } = this.#parts;
    this.#queue.push({ id, row, taken, segment });
    if (this.#queue.length === limits.batchRows) this.#schedule(0);
    else if (this.#timer === undefined) this.#schedule(limits.flushMs);
  }

  #spill(place: Place): void {
    this.#spilled ??= place;
    if (this.#timer === undefined) this.#schedule(this.#parts.limits.flushMs);
  }

  /** JSON of a row that is not in the database yet, if it is in memory. */
  waitingRow(id: string): string | undefined {
    this.#parts.commits.commit();
    // Asked for rarely, entered with every request: a search costs less than an index.
    return this.#queue.find((pending) => pending.id === id)?.row;
  }

  /** Runs after everything before it that moves leases, so that what the database says and what this process knows agree. */
  inOrder<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => {});
    return result;
  }

  /** Enters everything that was settled before the call; false when the database could not take it. */
  async flush(): Promise<boolean> {
    this.#parts.commits.commit();
    while (!this.empty) {
      if (!(await this.#run())) return false;
    }
    return true;
  }

  /** Stops trying. What waits is in the journal. */
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

  /** One run at a time: what is in memory now, then what is only in the journal. */
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

  async #flushSpilled(from: Place): Promise<void> {
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
  }

  #failed(error: unknown): void {
    const { journal, log } = this.#parts;
    if (!this.#failing) log.warn('rows wait in the journal', { rows: this.#queue.length, error });
    for (const pending of this.#queue.filter(({ segment }) => segment === undefined)) {
      const segment = journal.appendAnyway('S', encodeSettled(pending));
      if (segment === undefined) return;
      // Behind what is read back from the journal it is read back as well.
      if (this.#spilled === undefined) pending.segment = segment;
      else this.#queue.splice(this.#queue.indexOf(pending), 1);
    }
  }
}

/**
 * Enters rows, again if need be. A row that PostgreSQL refuses for what is in it is logged and left out, so that it does
 * not hold up the others: its cost stays held in the leases.
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
      log.error('the database refuses a row', { generation: entries[0]?.id, error });
      return [];
    }
    const half = entries.length >> 1;
    const first = await enterBatch(database, processId, entries.slice(0, half), log);
    return first.concat(await enterBatch(database, processId, entries.slice(half), log));
  }
}

/** The first row of a month finds no table for it. */
async function enterOnce(database: Database, processId: string, entries: readonly Entry[]): Promise<string[]> {
  const enter = () => database.transaction((tx) => enterGenerations(tx, processId, entries));
  try {
    return await enter();
  } catch (error) {
    if (!isMonthMissing(error)) throw error;
    await addMonths(database, new Set(entries.map(({ row }) => monthOf(row))));
    return enter();
  }
}

const CREATED_AT = '"created_at":"';

/** `2026-11` of the JSON of a row, whose time is in UTC. */
function monthOf(row: string): string {
  const at = row.indexOf(CREATED_AT) + CREATED_AT.length;
  return row.slice(at, at + 7);
}

/** SQLSTATE classes 22 (data exception) and 23 (constraint violation). */
function isRowsFault(error: unknown): boolean {
  const code = (error as { code?: unknown }).code;
  return typeof code === 'string' && /^2[23]...$/.test(code);
}
