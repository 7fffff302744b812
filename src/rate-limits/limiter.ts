/** Rate limits of one process: see `index.ts`. */
import { randomUUID } from 'node:crypto';
import type { Clock, Timer } from '../base/clock.ts';
import { GatewayError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { Changes, Database, Queryable } from '../storage/database.ts';
import { LeaseWaitQueue, RECALL_TIMEOUT_MS } from './lease-wait-queue.ts';
import { type RateLimit, type RateRefusal, windowId } from './limits.ts';
import { RateLimitHold } from './rate-limit-hold.ts';
import { type RateGrant, type RateRequest, removeEnded, requestRates, returnRates } from './store.ts';
import { RateWindow, RateWindows } from './window.ts';

interface LimiterOptions {
  database: Pick<Database, 'transaction' | 'query'>;
  changes: Pick<Changes, 'subscribe' | 'announce'>;
  clock: Clock;
  log: Log;
  /** Overridden in tests. */
  recallTimeoutMs?: number;
}

const RECALL = 'rates.recall';
const RETURN = 'rates.return';
/** After a recall other processes may ask for more: take only what is needed and return the surplus at once. */
const CONTESTED_MS = 1_000;
const SWEEP_MS = 30_000;
const REMOVE_EVERY_MS = 600_000;
/** Requests accepted in a window may reserve tokens of it after its end. */
const KEPT_MS = 3_600_000;

export class Limiter {
  readonly #options: LimiterOptions;
  readonly #clock: Clock;
  readonly #processId = randomUUID();
  readonly #windows = new Map<string, RateWindow>();
  /** By the limits of a caller: all requests of a caller share one array. */
  readonly #byLimits = new WeakMap<readonly RateLimit[], RateWindows>();
  readonly #queue: LeaseWaitQueue;
  /** Windows whose idle lease is being returned, including those that answer a recall with nothing to return. */
  readonly #returning = new Set<RateWindow>();
  #returnRun: Promise<void> | undefined;
  readonly #sweeper: Timer;
  #removeAt = 0;
  #closed = false;

  constructor(options: LimiterOptions) {
    const { changes, clock, recallTimeoutMs = RECALL_TIMEOUT_MS } = options;
    this.#options = options;
    this.#clock = clock;
    this.#queue = new LeaseWaitQueue((requests) => this.#request(requests), clock, recallTimeoutMs);
    changes.subscribe(RECALL, (id) => this.#received(id, (window) => this.#recalled(window)));
    changes.subscribe(RETURN, (id) => this.#received(id, (window) => this.#returned(window)));
    this.#sweeper = clock.timer(SWEEP_MS, () => void this.#sweep());
  }

  /**
   * Counts one request against all of `limits`, or against none of them. Pass the same array for each request of a
   * caller. Returns without a promise while this process's leases cover the request. Rejects with GatewayError 503 when
   * the database is needed and down.
   * @param acceptedAt wall time in ms, decides the windows
   */
  admit(
    limits: readonly RateLimit[],
    acceptedAt: number,
  ): RateLimitHold | RateRefusal | Promise<RateLimitHold | RateRefusal> {
    const windows = this.#windowsOf(limits, acceptedAt);
    const { requests } = windows;
    const hold = new RateLimitHold(this, windows);
    if (this.takeNow(requests, 1)) return hold;
    const refusal = this.takeLater(requests, 1, () => {
      for (const window of requests) window.taken += 1;
    });
    if (refusal instanceof Promise) return refusal.then((known) => known ?? hold);
    return refusal;
  }

  /** @internal Takes `amount` from every window if the leases cover all of it, and nothing otherwise. */
  takeNow(windows: readonly RateWindow[], amount: number): boolean {
    const now = this.#clock.monotonic();
    let covered = true;
    for (const window of windows) {
      window.usedAt = now;
      if (window.blocked || !window.covers(amount)) covered = false;
    }
    if (covered) for (const window of windows) window.taken += amount;
    return covered;
  }

  /** @internal Calls `taken` once `amount` fits into every window, or returns the refusal. */
  takeLater(
    windows: readonly RateWindow[],
    amount: number,
    taken: () => void,
  ): RateRefusal | Promise<RateRefusal | undefined> {
    return this.#queue.wait(windows, amount, taken);
  }

  /** @internal Adds usage beyond the hold, or returns the unused part of it (negative `amount`). */
  settle(windows: readonly RateWindow[], amount: number): void {
    if (windows.length === 0) return;
    const now = this.#clock.monotonic();
    for (const window of windows) {
      window.taken += amount;
      if (amount >= 0) continue;
      if (window.blocked) this.#queue.signal();
      else if (window.contestedUntil > now) this.#returnIdle(window);
    }
  }

  /** Returns the idle leases. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#sweeper.cancel();
    const now = this.#clock.now();
    for (const window of this.#windows.values()) if (window.end > now && window.idle > 0) this.#returning.add(window);
    if (this.#returning.size > 0) this.#startReturn();
    await this.#returnRun;
  }

  #windowsOf(limits: readonly RateLimit[], timeMs: number): RateWindows {
    let windows = this.#byLimits.get(limits);
    if (windows?.serve(timeMs)) return windows;
    windows = new RateWindows(
      limits,
      limits.map((limit) => this.#window(limit, timeMs)),
    );
    this.#byLimits.set(limits, windows);
    return windows;
  }

  #window(limit: RateLimit, timeMs: number): RateWindow {
    const id = windowId(limit, timeMs);
    let window = this.#windows.get(id);
    if (window === undefined) {
      window = new RateWindow(limit, timeMs);
      this.#windows.set(id, window);
    }
    window.adopt(limit);
    return window;
  }

  async #request(requests: readonly RateRequest[]): Promise<RateGrant[]> {
    // A closed process has returned its leases. It must not take more, because nothing would return them.
    if (this.#closed) throw closing();
    return this.#options.database.transaction(async (tx) => {
      const { grants, recalled } = await requestRates(tx, this.#processId, requests);
      const waiting = recalled.filter((id) => grants.some((grant) => grant.id === id && grant.outstanding > 0));
      const announcements = [
        [RECALL, waiting],
        [RETURN, requests.filter(({ back }) => back > 0).map(({ id }) => id)],
      ] as const;
      for (const [topic, ids] of announcements) if (ids.length > 0) await this.#announce(tx, topic, ids);
      return grants;
    });
  }

  async #announce(tx: Queryable, topic: string, ids: readonly string[]): Promise<void> {
    await this.#options.changes.announce(tx, topic, ...ids.map((id) => `${this.#processId} ${id}`));
  }

  #received(id: string | null, handle: (window: RateWindow) => void): void {
    // After a lost connection the requests that waited have given up already.
    if (id === null || id.startsWith(this.#processId)) return;
    const window = this.#windows.get(id.slice(this.#processId.length + 1));
    if (window !== undefined) handle(window);
  }

  #recalled(window: RateWindow): void {
    window.contestedUntil = this.#clock.monotonic() + CONTESTED_MS;
    this.#returnIdle(window);
  }

  #returned(window: RateWindow): void {
    window.emptyUntil = 0;
    window.retryAt = 0;
    if (window.blocked) this.#queue.signal();
  }

  #returnIdle(window: RateWindow): void {
    this.#returning.add(window);
    if (!this.#closed) this.#startReturn();
  }

  #startReturn(): void {
    this.#returnRun ??= this.#returnAll().finally(() => {
      this.#returnRun = undefined;
    });
  }

  async #returnAll(): Promise<void> {
    while (this.#returning.size > 0) {
      // Wait one microtask, so that everything settled in this turn is returned together.
      await Promise.resolve();
      const windows = [...this.#returning];
      this.#returning.clear();
      const returns = windows.map((window) => ({ id: window.id, back: window.takeIdle() }));
      try {
        await this.#options.database.transaction(async (tx) => {
          await returnRates(tx, this.#processId, returns);
          await this.#announce(
            tx,
            RETURN,
            returns.map(({ id }) => id),
          );
        });
      } catch (error) {
        // The lease is lost until its window ends. Returning it again could allow the same usage twice.
        this.#options.log.warn('rate limit lease not returned; the limit is lower until its window ends', { error });
      }
    }
  }

  /** Drops windows that have ended, and returns the idle lease of windows that are unused for a while. */
  async #sweep(): Promise<void> {
    const [now, monotonic] = [this.#clock.now(), this.#clock.monotonic()];
    for (const [id, window] of this.#windows) {
      if (window.blocked) continue;
      if (window.end <= now) this.#windows.delete(id);
      else if (window.idle > 0 && window.usedAt + SWEEP_MS < monotonic) this.#returnIdle(window);
    }
    if (this.#windows.size > 0 && monotonic >= this.#removeAt) {
      this.#removeAt = monotonic + REMOVE_EVERY_MS;
      // On failure the next sweep tries again.
      await removeEnded(this.#options.database, new Date(now - KEPT_MS)).catch(() => {});
    }
    if (!this.#closed) this.#sweeper.refresh();
  }
}

function closing(): GatewayError {
  return new GatewayError('server', 'the gateway is shutting down', { status: 503, metadata: { retryable: true } });
}
