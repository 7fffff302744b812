/**
 * One value that is read from the database as a whole, held in memory and followed by changes. Before each use `refresh` says
 * whether it may be used at once.
 */
import type { Clock } from '../base/clock.ts';
import { GatewayError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { Changes } from './database.ts';
import { type Freshness, READ_TIMEOUT_MS } from './freshness.ts';
import { unavailable } from './unavailable.ts';

interface FollowedParts<T> {
  changes: Pick<Changes, 'subscribe' | 'freshness'>;
  clock: Clock;
  log: Log;
  topic: string;
  /** For the log and for 503, e.g. "the account's balance". */
  name: string;
  /** Reads it. What it finds must not be older than the call. */
  read(): Promise<T>;
  /** Called with each value that was read. */
  adopted?(value: T): void;
  /** Called when the value may have changed, before it is read. */
  changed?(): void;
}

/** A followed value, for callers that only wait for it. */
export interface Refreshable {
  /** Nothing that was heard of is still to be read. */
  readonly upToDate: boolean;
  /** As `Followed.refresh`. */
  refresh(): Promise<void> | undefined;
}

/** One `refresh` for several values: costs one look at the clocks while changes arrive. */
export function refresher(freshness: Freshness, followed: readonly Refreshable[]): () => Promise<void> | undefined {
  return () => {
    if (freshness.current && followed.every(isUpToDate)) return undefined;
    return Promise.all(followed.map((one) => one.refresh())).then(() => {});
  };
}

function isUpToDate({ upToDate }: Refreshable): boolean {
  return upToDate;
}

export class Followed<T> implements Refreshable {
  readonly #parts: FollowedParts<T>;
  #value: { value: T; readAt: number } | undefined;
  /** Counts what may have changed it; what was read is out of date where `#readFor` differs. */
  #changes = 1;
  #readFor = 0;
  /** Monotonic time until which the value is known to have been right, where changes were missed; -Infinity: it did change. */
  #rightUntil: number | undefined;
  #reading: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  #failing = false;
  #closed = false;

  constructor(parts: FollowedParts<T>) {
    this.#parts = parts;
    parts.changes.subscribe(parts.topic, (id) => this.#changed(id));
  }

  /** Reads it, in any case. Rejects as the reading does. */
  readNow(): Promise<void> {
    return this.#readFromNow();
  }

  /** As it was last read; undefined before the first reading. */
  get value(): T | undefined {
    return this.#value?.value;
  }

  get upToDate(): boolean {
    return this.#readFor === this.#changes;
  }

  /** Whether the value may be used now. */
  get current(): boolean {
    return this.upToDate && this.#parts.changes.freshness.current;
  }

  /**
   * undefined: the value may be used now. Otherwise resolves as soon as it may.
   *
   * @throws GatewayError 503 (as a rejection) when it cannot be read, and is not in its grace
   */
  refresh(): Promise<void> | undefined {
    return this.current ? undefined : this.#readOrGrace();
  }

  close(): void {
    this.#closed = true;
  }

  async #readOrGrace(): Promise<void> {
    const { freshness } = this.#parts.changes;
    if (this.#inGrace && !freshness.mayRead()) return;
    const { promise: timeout, reject } = Promise.withResolvers<never>();
    const timer = this.#parts.clock.timer(READ_TIMEOUT_MS, () => {
      freshness.read(false);
      reject(new Error('the database did not answer in time'));
    });
    try {
      await Promise.race([this.#readFromNow(), timeout]);
      freshness.read(true);
    } catch (error) {
      if (this.#inGrace) return;
      if (error instanceof GatewayError) throw error;
      throw unavailable(`${this.#parts.name} cannot be read at the moment. Retry.`, error);
    } finally {
      timer.cancel();
    }
  }

  get #inGrace(): boolean {
    if (this.#value === undefined) return false;
    const { freshness } = this.#parts.changes;
    return freshness.inGrace(this.#rightUntil ?? this.#provenUntil);
  }

  /** Fulfilled when what is held is no older than the change, or cannot be read. */
  async #changed(id: string | null): Promise<void> {
    // Nothing has asked for it yet; the first reading will be newer.
    if (this.#value === undefined && this.#reading === undefined) return;
    this.#changes += 1;
    const right = id === null ? this.#provenUntil : Number.NEGATIVE_INFINITY;
    this.#rightUntil = Math.min(this.#rightUntil ?? Number.POSITIVE_INFINITY, right);
    this.#parts.changed?.();
    // A failure is logged, and the next use reads again.
    await this.#readFromNow().catch(() => {});
  }

  get #provenUntil(): number {
    return Math.max(this.#value?.readAt ?? Number.NEGATIVE_INFINITY, this.#parts.changes.freshness.provenAt);
  }

  /** A reading that begins after this call: the next one, if one is under way. */
  #readFromNow(): Promise<void> {
    if (this.#reading === undefined) {
      this.#reading = this.#read().finally(() => {
        this.#reading = undefined;
      });
      return this.#reading;
    }
    this.#next ??= this.#reading
      .catch(() => {})
      .then(() => {
        this.#next = undefined;
        return this.#readFromNow();
      });
    return this.#next;
  }

  async #read(): Promise<void> {
    const { clock, read, adopted, log, name } = this.#parts;
    const [readAt, readFor] = [clock.monotonic(), this.#changes];
    try {
      const value = await read();
      this.#value = { value, readAt };
      this.#readFor = readFor;
      if (readFor === this.#changes) this.#rightUntil = undefined;
      this.#failing = false;
      adopted?.(value);
    } catch (error) {
      if (!this.#failing && !this.#closed) log.warn(`${name} cannot be read`, { error });
      this.#failing = true;
      throw error;
    }
  }
}
