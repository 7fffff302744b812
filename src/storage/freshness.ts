/**
 * Whether changes made by other processes still reach this one: the only place that decides it. Everything that a process
 * holds in memory and follows by `Changes` asks here before it uses what it holds.
 *
 * The listener proves it about once a second: it sends a notification through the server and measures until it arrives. As
 * notifications arrive in the order of their commits, everything committed before the proof was sent has arrived too. So a
 * process uses what it holds for `TRUST_MS` after it has sent a proof that came back. From then on it reads the database.
 * A write therefore answers at the latest after `TRUST_MS`: a process that has not acknowledged it by then has stopped using
 * its memory.
 */
import type { Clock } from '../base/clock.ts';

/** How often a proof is sent. */
export const HEARTBEAT_MS = 1_000;
/** How long a proof counts, from the moment it was sent. */
export const TRUST_MS = 3_000;
/**
 * How long a process uses what it holds when changes do not arrive and the database cannot be read either: long enough for
 * a failover or restart of the database, short enough that a key revoked elsewhere does not live on for hours.
 */
export const OUTAGE_GRACE_MS = 300_000;
/** Reads that wait longer count as failed. At most `TRUST_MS`, so that what a read found is never older than a proof. */
export const READ_TIMEOUT_MS = TRUST_MS;
/** After a read that timed out the next one is tried this much later; until then state within its grace is used at once. */
const RETRY_MS = 1_000;

export interface Freshness {
  /** Whether every change older than `TRUST_MS` has arrived. Costs two clock readings. */
  readonly current: boolean;
  /** Monotonic time in ms; every change committed before it has arrived. -Infinity before the first proof. */
  readonly provenAt: number;
  /**
   * Whether to ask the database for state that is in its grace. After a read that timed out only one caller at a time does,
   * so that a server that swallows statements does not delay every request.
   */
  mayRead(): boolean;
  /** To be called when a read of followed state ended or timed out. */
  read(answered: boolean): void;
  /** Whether state that was last known to be right at `since` (monotonic ms) may be used while the database is unreachable. */
  inGrace(since: number): boolean;
}

/** A moment on both clocks. */
export interface Moment {
  monotonic: number;
  wall: number;
}

export class ProvenFreshness implements Freshness {
  readonly #clock: Clock;
  readonly #database: { readonly up: boolean };
  provenAt = Number.NEGATIVE_INFINITY;
  #until = Number.NEGATIVE_INFINITY;
  #wallUntil = Number.NEGATIVE_INFINITY;
  /** Set after a read that timed out. */
  #retryAt: number | undefined;

  constructor(clock: Clock, database: { readonly up: boolean }) {
    this.#clock = clock;
    this.#database = database;
  }

  /**
   * A comparison and no flag that a timer clears: a process that was suspended may serve a request before its timers fire.
   * The monotonic clock stops while a machine sleeps, the wall clock does not.
   */
  get current(): boolean {
    return this.#clock.monotonic() < this.#until && this.#clock.now() < this.#wallUntil;
  }

  mayRead(): boolean {
    if (!this.#database.up) return false;
    if (this.#retryAt === undefined) return true;
    const now = this.#clock.monotonic();
    if (now < this.#retryAt) return false;
    this.#retryAt = now + READ_TIMEOUT_MS + RETRY_MS;
    return true;
  }

  read(answered: boolean): void {
    this.#retryAt = answered ? undefined : this.#clock.monotonic() + RETRY_MS;
  }

  now(): Moment {
    return { monotonic: this.#clock.monotonic(), wall: this.#clock.now() };
  }

  /** A proof that was sent at this moment has arrived. */
  proven({ monotonic, wall }: Moment): void {
    this.provenAt = monotonic;
    this.#until = monotonic + TRUST_MS;
    this.#wallUntil = wall + TRUST_MS;
  }

  /** The connection is lost. */
  lost(): void {
    this.#until = Number.NEGATIVE_INFINITY;
  }

  inGrace(since: number): boolean {
    return this.#clock.monotonic() - since < OUTAGE_GRACE_MS;
  }
}
