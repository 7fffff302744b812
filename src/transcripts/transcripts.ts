/**
 * The transcripts of one process: gathered in memory, written in the background, and dropped and counted if the
 * database cannot keep up. A killed process loses those of its last second; its spend is in the journal.
 */
import type { Caller } from '../access/index.ts';
import { Allowance } from '../base/allowance.ts';
import { type Clock, type Timer, waitAtMost } from '../base/clock.ts';
import type { IoLoggingSettings } from '../base/config.ts';
import type { Log } from '../base/log.ts';
import type { JobKind } from '../jobs/index.ts';
import type { Database } from '../storage/database.ts';
import { findTranscript, insertTranscripts, removeFeedback, removeTranscripts } from './store.ts';
import { type ContentRule, ruleOf, type Transcript } from './transcript.ts';

const WRITE_MS = 500;
/** Rows and UTF-16 units of one statement. */
const ROWS_AT_ONCE = 200;
const UNITS_AT_ONCE = 4 * 1024 * 1024;
/** The most rows and UTF-16 units that wait. */
const MOST_ROWS = 10_000;
const MOST_UNITS = 32 * 1024 * 1024;
/** UTF-16 units of answers that are still being streamed. */
const OPEN_UNITS = 32 * 1024 * 1024;
const CLEAN_MS = 3_600_000;
const DAY_MS = 86_400_000;
/** How often a backlog is logged. */
const WARN_EVERY_MS = 60_000;
/** How long closing waits for pending writes. */
const LAST_WRITES_MS = 2_000;

export interface TranscriptOptions {
  database: Database;
  clock: Clock;
  log: Log;
  /** The current configuration. */
  settings(): IoLoggingSettings;
  /** How long generations and the feedback on them are kept; null for ever. */
  feedbackDays(): number | null;
  /** Like `Math.random`. */
  random(): number;
}

export interface Transcripts {
  /** Undefined if the request's content is not logged. */
  ruleFor(caller: Caller): ContentRule | undefined;
  /** Shared buffer for answers that are still being streamed. */
  readonly memory: Allowance;
  /** False if the backlog has no room for one of this size, which then counts as dropped. */
  hasRoom(size: number): boolean;
  /** Returns at once, never throws. */
  keep(transcript: Transcript): void;
  /** Number of transcripts that could not be stored. */
  readonly dropped: number;
  find(id: string): Promise<Transcript | undefined>;
  /** Resolves when everything passed to `keep` so far is written, or the write has failed. */
  flush(): Promise<void>;
  /** Removes transcripts and feedback past their retention. */
  clean(): Promise<void>;
  close(): Promise<void>;
}

/** The background job that removes inputs and outputs past their retention. */
export function cleanTranscriptsJob(transcripts: Transcripts): JobKind {
  return { name: 'transcripts.clean', runs: 'one', retries: 0, everyMs: CLEAN_MS, run: () => transcripts.clean() };
}

export function createTranscripts(options: TranscriptOptions): Transcripts {
  return new StoredTranscripts(options);
}

class StoredTranscripts implements Transcripts {
  readonly memory = new Allowance(OPEN_UNITS);
  dropped = 0;
  readonly #options: TranscriptOptions;
  readonly #waiting = new Map<string, Transcript>();
  #units = 0;
  #timer: Timer | undefined;
  #writing: Promise<void> | undefined;
  #closed = false;
  #failing = false;
  #warnedAt = Number.NEGATIVE_INFINITY;

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
    if (now - this.#warnedAt < WARN_EVERY_MS) return;
    this.#warnedAt = now;
    this.#options.log.warn('content log full: the database is too slow', {
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
        // The rows wait for the next write. Logs once per outage; the request path reports it in more detail.
        if (!this.#failing && !this.#closed) this.#options.log.warn('content log write failed', { cause });
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
      log.warn('content log cleanup failed', { cause });
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
