/**
 * The journal of one process: an append-only list of records in segment files. `append` returns once the record is in
 * the kernel's page cache, so kill -9 loses nothing. An fdatasync follows within 50 ms, so power loss costs that
 * window.
 *
 * A segment is deleted when none of its records is needed any more: `append` counts one use, `release` ends it. A small
 * ballast file is kept, so that running answers can still be entered when the disk is full.
 */
import * as nodeFiles from 'node:fs';
import { join } from 'node:path';
import type { Clock, Timer } from '../base/clock.ts';
import { GatewayError } from '../base/errors.ts';
import type { RecordKind } from './record.ts';
import { RecordBuffer } from './record-buffer.ts';

/** The file operations that fail on a full or broken disk; replaced in tests. */
export interface JournalFiles {
  openSync(path: string, flags: string): number;
  writeSync(descriptor: number, bytes: Uint8Array, offset: number, length: number, position: number): number;
  ftruncateSync(descriptor: number, length: number): void;
  fdatasync(descriptor: number, done: (error: Error | null) => void): void;
  closeSync(descriptor: number): void;
  unlinkSync(path: string): void;
}

export interface JournalOptions {
  directory: string;
  clock: Clock;
  /** Called on every tick, before the fdatasync, to append batched records. */
  beforeSync?: () => void;
  /** Called once when the journal becomes unwritable, and once with null when it is writable again. */
  onHealth?: (problem: Error | null) => void;
  files?: JournalFiles;
  segmentBytes?: number;
  ballastBytes?: number;
  /** Time from the first unsynced record to the fdatasync. */
  syncMs?: number;
}

export interface Segment {
  readonly number: number;
  readonly path: string;
  readonly descriptor: number;
  /** One past the last intact record. */
  end: number;
  /** Records in it that are still needed. */
  uses: number;
}

const RETRY_MS = 100;
/** Free space that must be available before the journal counts as writable. */
const PROBE_BYTES = 64 * 1024;

function segmentName(number: number): string {
  return `${String(number).padStart(8, '0')}.log`;
}

export class Journal {
  readonly directory: string;
  /** Bytes in all segments that still exist. */
  bytes = 0;
  /** Offset of the last write in the current segment. */
  lastStart = 0;
  /** By number, oldest first; the last one is written to. */
  readonly segments = new Map<number, Segment>();

  readonly #files: JournalFiles;
  readonly #clock: Clock;
  readonly #beforeSync: () => void;
  readonly #onHealth: (problem: Error | null) => void;
  readonly #segmentBytes: number;
  readonly #syncMs: number;
  readonly #ballast: Buffer;
  /** Buffer for single records. */
  readonly #single = new RecordBuffer();
  #current: Segment;
  #unsynced = new Set<Segment>();
  #timer: Timer | undefined;
  #syncing = 0;
  /** A tick was requested while fdatasync ran. */
  #wanted = false;
  #idle: (() => void)[] = [];
  #problem: Error | null = null;
  #retryAt = 0;
  #hasBallast = false;
  #closed = false;

  constructor(options: JournalOptions) {
    this.directory = options.directory;
    this.#files = options.files ?? nodeFiles;
    this.#clock = options.clock;
    this.#beforeSync = options.beforeSync ?? (() => {});
    this.#onHealth = options.onHealth ?? (() => {});
    this.#segmentBytes = options.segmentBytes ?? 8 * 1024 * 1024;
    this.#syncMs = options.syncMs ?? 50;
    this.#ballast = Buffer.alloc(options.ballastBytes ?? 1024 * 1024);
    this.#current = this.#open(1);
    try {
      this.#restoreBallast();
    } catch (cause) {
      this.#failed(cause as Error);
    }
  }

  get current(): Segment {
    return this.#current;
  }

  /**
   * Appends a record that must be written before a dispatch. Throws GatewayError 503 (retryable) if it is not written.
   */
  append(kind: RecordKind, json: string): Segment {
    return this.appendRecords(this.#alone(kind, json));
  }

  /** The same for several records in one write, all or none; each is a use of the segment. */
  appendRecords(records: RecordBuffer): Segment {
    this.recover();
    try {
      return this.#write(records);
    } catch (cause) {
      this.#failed(cause as Error);
      throw unavailable(cause);
    }
  }

  /** Appends a record of something that has already happened, using the ballast if needed; undefined if impossible. */
  appendAnyway(kind: RecordKind, json: string): Segment | undefined {
    return this.appendRecordsAnyway(this.#alone(kind, json));
  }

  /** The same for several records in one write. */
  appendRecordsAnyway(records: RecordBuffer): Segment | undefined {
    for (;;) {
      try {
        return this.#write(records);
      } catch (cause) {
        this.#failed(cause as Error);
        if (!this.#dropBallast()) return undefined;
      }
    }
  }

  /** Ends one use of a segment; an unused one that is no longer written to is deleted. */
  release(segment: Segment): void {
    segment.uses -= 1;
    if (segment.uses === 0 && segment !== this.#current) this.#remove(segment);
  }

  /** Throws GatewayError 503 while the journal cannot be written; calls retry at most every 100 ms. */
  recover(): void {
    if (this.#problem === null) return;
    const now = this.#clock.monotonic();
    if (now < this.#retryAt) throw unavailable(this.#problem);
    this.#retryAt = now + RETRY_MS;
    try {
      // Use a new segment: after a failed write or sync the end of the old one is unknown.
      if (this.#current.end > 0) this.#rotate();
      this.#restoreBallast();
      this.#probe();
    } catch (cause) {
      this.#failed(cause as Error);
      throw unavailable(cause);
    }
    this.#problem = null;
    this.#onHealth(null);
  }

  /** Schedules `beforeSync` within 50 ms although nothing was appended. */
  wake(): void {
    if (this.#syncing > 0) this.#wanted = true;
    else if (this.#timer === undefined && !this.#closed) this.#arm();
  }

  /** Resolves after an fdatasync that covers everything written before the call. */
  async sync(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    await this.#quiet();
    this.#startSync();
    await this.#quiet();
  }

  /** Syncs and closes. `remove` deletes the remaining files, if the journal is no longer needed. */
  async close(remove: boolean): Promise<void> {
    if (this.#closed) return;
    await this.sync();
    this.#closed = true;
    for (const segment of this.segments.values()) {
      this.#files.closeSync(segment.descriptor);
      if (remove) this.#files.unlinkSync(segment.path);
    }
    this.segments.clear();
    this.#dropBallast();
  }

  #alone(kind: RecordKind, json: string): RecordBuffer {
    this.#single.clear();
    this.#single.add(kind, json);
    return this.#single;
  }

  #write({ bytes, length, count }: RecordBuffer): Segment {
    if (this.#closed) throw new Error('the journal is closed');
    if (this.#current.end > 0 && this.#current.end + length > this.#segmentBytes) this.#rotate();
    const segment = this.#current;
    try {
      for (let done = 0; done < length; ) {
        done += this.#files.writeSync(segment.descriptor, bytes, done, length - done, segment.end + done);
      }
    } catch (cause) {
      this.#cutOff(segment);
      throw cause;
    }
    this.lastStart = segment.end;
    segment.end += length;
    segment.uses += count;
    this.bytes += length;
    this.#unsynced.add(segment);
    this.wake();
    return segment;
  }

  /**
   * A failed batch may have written its first records completely: cut them off, or a replay would accept a refused
   * intent.
   */
  #cutOff({ descriptor, end }: Segment): void {
    try {
      this.#files.ftruncateSync(descriptor, end);
    } catch {
      // The next write starts at `end` and overwrites the torn part, which is not a valid record.
    }
  }

  #rotate(): void {
    const old = this.#current;
    this.#current = this.#open(old.number + 1);
    if (old.uses === 0) this.#remove(old);
  }

  #open(number: number): Segment {
    const path = join(this.directory, segmentName(number));
    const descriptor = this.#files.openSync(path, 'wx+');
    const segment = { number, path, descriptor, end: 0, uses: 0 };
    this.segments.set(number, segment);
    return segment;
  }

  #remove(segment: Segment): void {
    this.segments.delete(segment.number);
    this.bytes -= segment.end;
    // A descriptor must stay open until its fdatasync is done.
    if (this.#syncing > 0) this.#idle.push(() => this.#dispose(segment));
    else this.#dispose(segment);
  }

  #dispose(segment: Segment): void {
    this.#unsynced.delete(segment);
    try {
      this.#files.closeSync(segment.descriptor);
      this.#files.unlinkSync(segment.path);
    } catch (cause) {
      this.#failed(cause as Error);
    }
  }

  /** Checks that there is free space in addition to the ballast. */
  #probe(): void {
    const { descriptor, end } = this.#current;
    const bytes = Buffer.alloc(PROBE_BYTES);
    for (let done = 0; done < PROBE_BYTES; ) {
      done += this.#files.writeSync(descriptor, bytes, done, PROBE_BYTES - done, end + done);
    }
    this.#files.ftruncateSync(descriptor, end);
  }

  #arm(): void {
    this.#timer = this.#clock.timer(this.#syncMs, () => {
      this.#timer = undefined;
      this.#beforeSync();
      this.#startSync();
    });
  }

  #startSync(): void {
    const segments = this.#unsynced;
    this.#unsynced = new Set();
    this.#syncing += segments.size;
    for (const segment of segments) this.#files.fdatasync(segment.descriptor, (error) => this.#synced(error));
  }

  #synced(error: Error | null): void {
    if (error !== null) this.#failed(error);
    this.#syncing -= 1;
    if (this.#syncing > 0) return;
    const waiting = this.#idle;
    this.#idle = [];
    for (const run of waiting) run();
    if (!this.#wanted && this.#unsynced.size === 0) return;
    this.#wanted = false;
    this.wake();
  }

  /** Resolves when no fdatasync is running. */
  #quiet(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#syncing === 0) resolve();
      else this.#idle.push(resolve);
    });
  }

  #failed(cause: Error): void {
    const first = this.#problem === null;
    this.#problem = cause;
    this.#retryAt = this.#clock.monotonic() + RETRY_MS;
    if (first) this.#onHealth(cause);
  }

  get #ballastPath(): string {
    return join(this.directory, 'ballast');
  }

  #restoreBallast(): void {
    if (this.#hasBallast) return;
    const descriptor = this.#files.openSync(this.#ballastPath, 'w');
    try {
      const { length } = this.#ballast;
      for (let done = 0; done < length; ) {
        done += this.#files.writeSync(descriptor, this.#ballast, done, length - done, done);
      }
      this.#hasBallast = true;
    } finally {
      this.#files.closeSync(descriptor);
      if (!this.#hasBallast) this.#files.unlinkSync(this.#ballastPath);
    }
  }

  #dropBallast(): boolean {
    if (!this.#hasBallast) return false;
    this.#hasBallast = false;
    try {
      this.#files.unlinkSync(this.#ballastPath);
    } catch {
      return false;
    }
    return true;
  }
}

function unavailable(cause: unknown): GatewayError {
  return new GatewayError('provider_overloaded', 'the journal cannot be written, so nothing is dispatched', {
    retryAfterSeconds: 1,
    metadata: { retryable: true, error_type: 'provider_overloaded' },
    cause,
  });
}
