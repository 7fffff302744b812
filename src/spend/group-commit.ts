/**
 * Group commit: what the requests of one turn of the event loop have to say to the journal goes into it in one write, at the
 * end of the turn. The intents of all that came in it stand there before any of them is dispatched, and the rows of all that
 * ended in it before the last byte of any of them is sent. Besides the writes this saves what changing between reading,
 * writing and sending costs: a third of a small request.
 */
import type { EndOfTurn } from '../base/end-of-turn.ts';
import type { Log } from '../base/log.ts';
import type { Journal, Segment } from './journal.ts';
import { Lines } from './lines.ts';

interface WaitingIntent<Begun = unknown> {
  json: string;
  /** Asked when the turn ends: nothing is written of a request whose client has gone by then. */
  wanted: () => boolean;
  begin: (segment: Segment) => Begun;
  resolve: (begun: Begun | undefined) => void;
  reject: (error: unknown) => void;
}

/** Told where a row stands; without a segment where it could not be written. */
export type Written = (segment: Segment | undefined, offset: number) => void;

interface WaitingRow {
  head: string;
  row: string;
  /** Where it begins among the lines. */
  start: number;
  written: Written;
}

export class GroupCommit {
  readonly #journal: Journal;
  readonly #log: Log;
  readonly #endOfTurn: EndOfTurn;
  readonly #lines = new Lines();
  #intents: WaitingIntent[] = [];
  #rows: WaitingRow[] = [];

  constructor(journal: Journal, log: Log, endOfTurn: EndOfTurn) {
    this.#journal = journal;
    this.#log = log;
    this.#endOfTurn = endOfTurn;
  }

  /**
   * Resolves at the end of the turn, when the intent is in the kernel's page cache, with what `begin` makes of it; nothing else
   * runs between that and what waits for it. Undefined when it was not wanted any more, and then it is not written. Rejects with GatewayError 503
   * (retryable) when it cannot be.
   */
  intent<Begun>(json: string, wanted: () => boolean, begin: (segment: Segment) => Begun): Promise<Begun | undefined> {
    this.#journal.recover();
    return new Promise((resolve, reject) => {
      this.#arm();
      this.#lines.add('I', json);
      this.#intents.push({ json, wanted, begin, resolve, reject } as WaitingIntent);
    });
  }

  /** A settled record, in two pieces. `written` is called at the end of the turn, when it is in the kernel's page cache, or cannot be. */
  settled(head: string, row: string, written: Written): void {
    this.#arm();
    this.#rows.push({ head, row, start: this.#lines.add('S', head, row), written });
  }

  /** Ends the turn now. Not for what ends requests: one whose intent is written goes on, whatever has become of it since. */
  commit(): void {
    const rows = this.#rows;
    const intents = this.#takeIntents();
    this.#rows = [];
    const { segment, refusal } = this.#write(rows, intents);
    // What is told of here may have more to say, for the next write.
    this.#lines.clear();
    const offset = this.#journal.lastStart;
    // Answers first: their clients have waited for longer.
    for (const row of rows) this.#tell(row, segment, offset + row.start);
    for (const intent of intents) {
      if (segment !== undefined && refusal === undefined) intent.resolve(intent.begin(segment));
      else intent.reject(refusal);
    }
  }

  /** Those that are still wanted. */
  #takeIntents(): WaitingIntent[] {
    const all = this.#intents;
    this.#intents = [];
    const wanted: WaitingIntent[] = [];
    for (const intent of all) {
      if (intent.wanted()) wanted.push(intent);
      else intent.resolve(undefined);
    }
    if (wanted.length < all.length) this.#setLines(this.#rows, wanted);
    return wanted;
  }

  /** The lines hold what is given, and nothing else. */
  #setLines(rows: readonly WaitingRow[], intents: readonly WaitingIntent[]): void {
    this.#lines.clear();
    for (const waiting of rows) waiting.start = this.#lines.add('S', waiting.head, waiting.row);
    for (const intent of intents) this.#lines.add('I', intent.json);
  }

  /** `refusal` is that of the intents. */
  #write(rows: readonly WaitingRow[], intents: readonly WaitingIntent[]) {
    let refusal: unknown;
    if (intents.length > 0) {
      try {
        return { segment: this.#journal.appendLines(this.#lines), refusal };
      } catch (cause) {
        refusal = cause;
        this.#setLines(rows, []);
      }
    }
    // What is settled has happened, so it is written where an intent may not be.
    const segment = rows.length === 0 ? undefined : this.#journal.appendLinesAnyway(this.#lines);
    return { segment, refusal };
  }

  #tell(row: WaitingRow, segment: Segment | undefined, offset: number): void {
    try {
      row.written(segment, offset);
    } catch (cause) {
      // One answer that cannot be sent must not keep the others.
      this.#log.error('what follows a settled record failed', { cause });
    }
  }

  /** Called before something is added: the first of a turn sees to its end. */
  #arm(): void {
    if (this.#rows.length + this.#intents.length === 0) this.#endOfTurn(() => this.commit());
  }
}
