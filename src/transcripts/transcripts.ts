/**
 * The transcripts of one process: gathered in memory, written behind the requests' backs, dropped and counted when the
 * database cannot keep up. A process that is killed loses those of its last second; what was spent is in the journal.
 */
import type { Caller } from '../access/index.ts';
import { type Clock, type Timer, waitAtMost } from '../base/clock.ts';
import type { IoLoggingSettings } from '../base/config.ts';
import type { Log } from '../base/log.ts';
import { Room } from '../base/room.ts';
import type { JobKind } from '../jobs/index.ts';
import type { Database } from '../storage/database.ts';
import { findTranscript, insertTranscripts, removeFeedback, removeTranscripts } from './store.ts';
import { type ContentRule, ruleOf, type Transcript } from './transcript.ts';

const WRITE_MS = 500;
/** Rows and UTF-16 units of one statement. */
const ROWS_AT_ONCE = 200;
const UNITS_AT_ONCE = 4 * 1024 * 1024;
/** Rows and UTF-16 units that may wait. */
const MOST_ROWS = 10_000;
const MOST_UNITS = 32 * 1024 * 1024;
/** UTF-16 units of answers that are still being given. */
const OPEN_UNITS = 32 * 1024 * 1024;
const CLEAN_MS = 3_600_000;
const DAY_MS = 86_400_000;
/** How often a backlog is told of. */
const TOLD_MS = 60_000;
/** How long the end waits for what is not written yet. */
const LAST_WRITES_MS = 2_000;

export interface TranscriptOptions {
  database: Database;
  clock: Clock;
  log: Log;
  /** As configured now. */
  settings(): IoLoggingSettings;
  /** How long generations are kept, and with them what was thought of them; null: for ever. */
  feedbackDays(): number | null;
  /** As Math.random. */
  random(): number;
}

export interface Transcripts {
  /** Undefined: nothing of this request is kept. */
  ruleFor(caller: Caller): ContentRule | undefined;
  /** For the answers that are still being given. */
  readonly room: Room;
  /** False when so much waits that one of this size is dropped; it is counted. */
  hasRoom(size: number): boolean;
  /** Returns at once, never throws. */
  keep(transcript: Transcript): void;
  /** How many could not be kept. */
  readonly dropped: number;
  find(id: string): Promise<Transcript | undefined>;
  /** Resolves when everything that was kept so far is written, or the attempt has failed. */
  flush(): Promise<void>;
  /** Removes what is older than it may be, now. */
  clean(): Promise<void>;
  close(): Promise<void>;
}

/** Removes inputs and outputs past their retention. */
export function cleanTranscriptsJob(transcripts: Transcripts): JobKind {
  return { name: 'transcripts.clean', runs: 'one', retries: 0, everyMs: CLEAN_MS, run: () => transcripts.clean() };
}

export function createTranscripts(options: TranscriptOptions): Transcripts {
  return new StoredTranscripts(options);
}

class StoredTranscripts implements Transcripts {
  readonly room = new Room(OPEN_UNITS);
  dropped = 0;
  readonly #options: TranscriptOptions;
  readonly #waiting = new Map<string, Transcript>();
  #units = 0;
  #timer: Timer | undefined;
  #writing: Promise<void> | undefined;
  #closed = false;
  #failing = false;
  #toldAt = Number.NEGATIVE_INFINITY;

  constructor(options: TranscriptOptions) {
    this.#options = options;
  }

  ruleFor(caller: Caller): ContentRule | undefined {
    const { settings, random } = this.#options;
    return ruleOf(caller, settings(), random);
  }

  hasRoom(size: number): boolean {
    if (!this.#closed && this.#units + size <= MOST_UNITS && this.#waiting.size < MOST_ROWS) return true;
    this.#drop();
    return false;
  }

  keep(transcript: Transcript): void {
    const size = sizeOf(transcript);
    if (!this.hasRoom(size)) return;
    this.#waiting.set(transcript.id, transcript);
    this.#units += size;
    if (this.#units > UNITS_AT_ONCE) this.#write();
    else this.#timer ??= this.#options.clock.timer(WRITE_MS, () => this.#write());
  }

  #drop(): void {
    this.dropped += 1;
    const now = this.#options.clock.monotonic();
    if (now - this.#toldAt < TOLD_MS) return;
    this.#toldAt = now;
    this.#options.log.warn('inputs and outputs are not logged: too many wait for the database', {
      dropped: this.dropped,
    });
  }

  #write(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = undefined;
      if (this.#waiting.size > 0 && !this.#closed)
        this.#timer ??= this.#options.clock.timer(WRITE_MS, () => this.#write());
    });
  }

  async #writeAll(): Promise<void> {
    while (this.#waiting.size > 0) {
      const rows: Transcript[] = [];
      let units = 0;
      for (const transcript of this.#waiting.values()) {
        units += sizeOf(transcript);
        if (rows.length > 0 && (rows.length === ROWS_AT_ONCE || units > UNITS_AT_ONCE)) break;
        rows.push(transcript);
      }
      try {
        await insertTranscripts(this.#options.database, rows);
        this.#failing = false;
      } catch (cause) {
        // They wait for the next time. Once an outage; the request path tells more of it than this.
        if (!this.#failing && !this.#closed)
          this.#options.log.warn('inputs and outputs cannot be written for now', { cause });
        this.#failing = true;
        return;
      }
      for (const row of rows) {
        this.#waiting.delete(row.id);
        this.#units -= sizeOf(row);
      }
    }
  }

  async find(id: string): Promise<Transcript | undefined> {
    return this.#waiting.get(id) ?? (await findTranscript(this.#options.database, id));
  }

  async flush(): Promise<void> {
    if (this.#waiting.size > 0) this.#write();
    await this.#writing;
  }

  async clean(): Promise<void> {
    const { database, clock, log, settings, feedbackDays } = this.#options;
    const now = clock.now();
    try {
      await removeTranscripts(database, now - settings().retentionDays * DAY_MS);
      const days = feedbackDays();
      if (days !== null) await removeFeedback(database, now - days * DAY_MS);
    } catch (cause) {
      log.warn('old inputs and outputs could not be removed', { cause });
    }
  }

  async close(): Promise<void> {
    await waitAtMost(this.#options.clock, LAST_WRITES_MS, this.flush());
    this.#closed = true;
    this.#timer?.cancel();
  }
}

function sizeOf({ input, output, error }: Transcript): number {
  return input.length + output.length + (error?.length ?? 0);
}
