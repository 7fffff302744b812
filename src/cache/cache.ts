/**
 * The response cache of one process. Lookups that arrive while one is running share the next statement, so any number
 * of them needs one connection. Answers are written one after the other, in the background.
 */

import { Allowance } from '../base/allowance.ts';
import { type Clock, waitAtMost } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { JobKind } from '../jobs/index.ts';
import type { Database } from '../storage/database.ts';
import type { CachedAnswer } from './answer.ts';
import { findAnswers, keepAnswer, removeOldest } from './store.ts';

/** The longest wait of a request for a lookup; after it the request counts as a miss. */
const LOOKUP_TIMEOUT_MS = 1_000;
/** The most keys of one statement, and the most requests that wait for one. */
const KEYS_AT_ONCE = 16;
const MOST_WAITING = 1_000;
/** The most bytes of answers not written yet, and of answers still being streamed; anything beyond is not cached. */
const UNWRITTEN_BYTES = 64 * 1024 * 1024;
const GATHERED_BYTES = 64 * 1024 * 1024;
const CLEAN_MS = 60_000;
/** Cleanup runs early after this share of the total size has been written. */
const CLEAN_SHARE = 1 / 16;
/** How long closing waits for pending writes. */
const LAST_WRITES_MS = 2_000;

export interface CacheOptions {
  database: Database;
  clock: Clock;
  log: Log;
  /** The most bytes of all answers, over all processes; 0 turns the cache off. */
  mostBytes: number;
  /** The most bytes of one answer. */
  answerBytes: number;
}

export interface ResponseCache {
  /** False when the cache is turned off. */
  readonly on: boolean;
  /** The most bytes of a cached answer. */
  readonly answerBytes: number;
  /** Shared buffer for answers that are still being streamed. */
  readonly memory: Allowance;
  /** The answer under the key; undefined if there is none, or the lookup failed or timed out. Never rejects. */
  find(key: Buffer): Promise<CachedAnswer | undefined>;
  /** Stores an answer. This process finds it at once, others milliseconds later. Returns at once, never throws. */
  keep(answer: CachedAnswer): void;
  /** Answers that were not stored because too many were waiting or the database failed. */
  readonly dropped: number;
  /** Removes expired answers and those over the size limit. Resolves also when the database is unreachable. */
  clean(): Promise<void>;
  close(): Promise<void>;
}

/** The background job that removes expired answers and those over the size limit. */
export function cleanCacheJob(cache: ResponseCache): JobKind {
  return { name: 'cache.clean', runs: 'one', retries: 0, everyMs: CLEAN_MS, run: () => cache.clean() };
}

export function createResponseCache(options: CacheOptions): ResponseCache {
  return new DatabaseCache(options);
}

interface Waiting {
  key: Buffer;
  /** The request has stopped waiting. */
  timedOut: boolean;
  resolve(answer: CachedAnswer | undefined): void;
}

class DatabaseCache implements ResponseCache {
  readonly on: boolean;
  readonly answerBytes: number;
  readonly memory = new Allowance(GATHERED_BYTES);
  dropped = 0;
  readonly #options: CacheOptions;
  readonly #waiting: Waiting[] = [];
  #querying = false;
  /** By key in hexadecimal, in the order in which they are written. */
  readonly #unwritten = new Map<string, CachedAnswer>();
  #unwrittenBytes = 0;
  #writing: Promise<void> | undefined;
  #writtenBytes = 0;
  #cleaning: Promise<void> | undefined;
  #closed = false;
  #failing = false;

  constructor(options: CacheOptions) {
    this.#options = options;
    this.on = options.mostBytes > 0;
    this.answerBytes = Math.min(options.answerBytes, options.mostBytes);
  }

  find(key: Buffer): Promise<CachedAnswer | undefined> {
    const { clock } = this.#options;
    const own = this.#unwritten.get(key.toString('hex'));
    if (own !== undefined && own.expiresAt > clock.now()) return Promise.resolve(own);
    if (this.#closed || this.#waiting.length >= MOST_WAITING) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      const timer = clock.timer(LOOKUP_TIMEOUT_MS, () => {
        waiting.timedOut = true;
        resolve(undefined);
      });
      const waiting: Waiting = {
        key,
        timedOut: false,
        resolve(answer) {
          timer.cancel();
          resolve(answer);
        },
      };
      this.#waiting.push(waiting);
      if (!this.#querying) void this.#query();
    });
  }

  async #query(): Promise<void> {
    this.#querying = true;
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, KEYS_AT_ONCE).filter(({ timedOut }) => !timedOut);
      if (batch.length === 0) continue;
      const found = new Map<string, CachedAnswer>();
      try {
        const { database, clock } = this.#options;
        const keys = batch.map(({ key }) => key);
        for (const answer of await findAnswers(database, keys, clock.now()))
          found.set(answer.key.toString('hex'), answer);
        this.#failing = false;
      } catch (cause) {
        this.#failed('response cache lookup failed', cause);
      }
      for (const { key, resolve } of batch) resolve(found.get(key.toString('hex')));
    }
    this.#querying = false;
  }

  keep(answer: CachedAnswer): void {
    const size = answer.body.length;
    if (!this.on || this.#closed || size > this.answerBytes) return;
    const name = answer.key.toString('hex');
    const before = this.#unwritten.get(name);
    if (before !== undefined) this.#forget(name, before);
    if (this.#unwrittenBytes + size > UNWRITTEN_BYTES) {
      this.dropped += 1;
      return;
    }
    this.#unwritten.set(name, answer);
    this.#unwrittenBytes += size;
    this.#writing ??= this.#write();
  }

  async #write(): Promise<void> {
    for (;;) {
      const next = this.#unwritten.entries().next();
      if (next.done) break;
      const [name, answer] = next.value;
      try {
        await keepAnswer(this.#options.database, answer);
        this.#writtenBytes += answer.body.length;
        this.#failing = false;
      } catch (cause) {
        this.dropped += 1;
        this.#failed('response cache write failed', cause);
      }
      // A newer answer for the same key may have replaced it.
      if (this.#unwritten.get(name) === answer) this.#forget(name, answer);
      if (this.#writtenBytes > this.#options.mostBytes * CLEAN_SHARE) await this.clean();
    }
    this.#writing = undefined;
  }

  #forget(name: string, answer: CachedAnswer): void {
    this.#unwritten.delete(name);
    this.#unwrittenBytes -= answer.body.length;
  }

  clean(): Promise<void> {
    this.#cleaning ??= this.#clean().finally(() => {
      this.#cleaning = undefined;
    });
    return this.#cleaning;
  }

  async #clean(): Promise<void> {
    const { database, clock, mostBytes } = this.#options;
    this.#writtenBytes = 0;
    try {
      await removeOldest(database, clock.now(), mostBytes);
    } catch (cause) {
      this.#failed('response cache cleanup failed', cause);
    }
  }

  /** Logs once per outage; the request path reports the outage in more detail. */
  #failed(event: string, cause: unknown): void {
    if (!this.#failing && !this.#closed) this.#options.log.warn(event, { cause });
    this.#failing = true;
  }

  async close(): Promise<void> {
    this.#closed = true;
    if (this.#writing !== undefined) await waitAtMost(this.#options.clock, LAST_WRITES_MS, this.#writing);
  }
}
