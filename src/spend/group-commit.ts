/**
 * Group commit: one journal write at the end of an event loop turn contains the records of all its requests. Intents of
 * requests that arrived in the turn are written before any of them is dispatched; rows of requests that ended in it are
 * written before the last byte of any answer is sent. Batching also saves the switches between reading, writing and
 * sending: a third of the cost of a small request.
 */
import type { EndOfTurn } from '../base/end-of-turn.ts';
import type { Log } from '../base/log.ts';
import type { Journal, Segment } from './journal.ts';
import { RecordBuffer } from './record-buffer.ts';

interface WaitingIntent<Begun = unknown> {
  json: string;
  /** Called at the end of the turn: false if the client has disconnected, so that nothing is written. */
  wanted: () => boolean;
  begin: (segment: Segment) => Begun;
  resolve: (begun: Begun | undefined) => void;
  reject: (error: unknown) => void;
}

/** Receives the position of a row; `segment` is undefined if it could not be written. */
type Written = (segment: Segment | undefined, offset: number) => void;

interface WaitingRow {
  head: string;
  row: string;
  /** Offset among the records. */
  start: number;
  written: Written;
}

export class GroupCommit {
  readonly #journal: Journal;
  readonly #log: Log;
  readonly #endOfTurn: EndOfTurn;
  readonly #records = new RecordBuffer();
  #intents: WaitingIntent[] = [];
  #rows: WaitingRow[] = [];

  constructor(journal: Journal, log: Log, endOfTurn: EndOfTurn) {
    this.#journal = journal;
    this.#log = log;
    this.#endOfTurn = endOfTurn;
  }

  /**
   * Resolves at the end of the turn with the result of `begin`, once the intent is in the kernel's page cache; nothing
   * else runs in between. Resolves with undefined, and writes nothing, if the intent is no longer wanted. Rejects with
   * GatewayError 503 (retryable) if it cannot be written.
   */
  intent<Begun>(json: string, wanted: () => boolean, begin: (segment: Segment) => Begun): Promise<Begun | undefined> {
    this.#journal.recover();
    return new Promise((resolve, reject) => {
      this.#arm();
      this.#records.add('I', json);
      this.#intents.push({ json, wanted, begin, resolve, reject } as WaitingIntent);
    });
  }

  /**
   * Adds a settled record, in two parts. `written` is called at the end of the turn, once the record is in the page
   * cache or has failed.
   */
  settled(head: string, row: string, written: Written): void {
    this.#arm();
    this.#rows.push({ head, row, start: this.#records.add('S', head, row), written });
  }

  /** Ends the turn now. Do not call it from code that cancels requests: a request whose intent is written continues. */
  commit(): void {
    const rows = this.#rows;
    const intents = this.#takeIntents();
    this.#rows = [];
    const { segment, refusal } = this.#write(rows, intents);
    // Callbacks may add records for the next write.
    this.#records.clear();
    const offset = this.#journal.lastStart;
    // Answers first: their clients have waited longer.
    for (const row of rows) this.#notify(row, segment, offset + row.start);
    for (const intent of intents) {
      if (segment !== undefined && refusal === undefined) intent.resolve(intent.begin(segment));
      else intent.reject(refusal);
    }
  }

  /** The intents that are still wanted. */
  #takeIntents(): WaitingIntent[] {
    const all = this.#intents;
    this.#intents = [];
    const wanted: WaitingIntent[] = [];
    for (const intent of all) {
      if (intent.wanted()) wanted.push(intent);
      else intent.resolve(undefined);
    }
    if (wanted.length < all.length) this.#setRecords(this.#rows, wanted);
    return wanted;
  }

  /** Rebuilds the records from `rows` and `intents` only. */
  #setRecords(rows: readonly WaitingRow[], intents: readonly WaitingIntent[]): void {
    this.#records.clear();
    for (const waiting of rows) waiting.start = this.#records.add('S', waiting.head, waiting.row);
    for (const intent of intents) this.#records.add('I', intent.json);
  }

  /** `refusal` applies to the intents. */
  #write(rows: readonly WaitingRow[], intents: readonly WaitingIntent[]) {
    let refusal: unknown;
    if (intents.length > 0) {
      try {
        return { segment: this.#journal.appendRecords(this.#records), refusal };
      } catch (cause) {
        refusal = cause;
        this.#setRecords(rows, []);
      }
    }
    // Settled records describe what has already happened, so they are written even where an intent may not be.
    const segment = rows.length === 0 ? undefined : this.#journal.appendRecordsAnyway(this.#records);
    return { segment, refusal };
  }

  #notify(row: WaitingRow, segment: Segment | undefined, offset: number): void {
    try {
      row.written(segment, offset);
    } catch (cause) {
      // A failure to send one answer must not stop the others.
      this.#log.error('callback of a settled record failed', { cause });
    }
  }

  /** Called before adding a record: the first one of a turn schedules its end. */
  #arm(): void {
    if (this.#rows.length + this.#intents.length === 0) this.#endOfTurn(() => this.commit());
  }
}
