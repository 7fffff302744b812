/** Whether the server can be reached. While it cannot, one probe asks, and statements wait briefly or are refused. */
import { type Clock, sleep } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { keepAlive } from './keep-alive.ts';
import { unavailable } from './unavailable.ts';

/** A crash recovery or restart of the embedded server is shorter, so callers do not notice it. */
const GRACE_MS = 3_000;
const PROBE_DELAY_MS = 20;
const PROBE_DELAY_LIMIT_MS = 1_000;

export class Availability {
  readonly #probe: () => Promise<unknown>;
  readonly #clock: Clock;
  readonly #log: Log;
  #downSinceMs: number | undefined;
  #reason: unknown;
  #closed = false;
  #waiting: (() => void)[] = [];

  /** @param probe resolves when a new connection answers a statement */
  constructor(probe: () => Promise<unknown>, clock: Clock, log: Log) {
    this.#probe = probe;
    this.#clock = clock;
    this.#log = log;
  }

  get up(): boolean {
    return this.#downSinceMs === undefined && !this.#closed;
  }

  /** Something failed in a way that makes the server suspect; asks it at once. */
  lost(reason: unknown): void {
    if (!this.up) return;
    this.#downSinceMs = this.#clock.monotonic();
    this.#reason = reason;
    this.#log.warn('the database cannot be reached', { reason: (reason as Error).message });
    void this.#recover();
  }

  /** Resolves when the server can be reached; rejects with 503 once it has been away for longer than the grace. */
  async ready(): Promise<void> {
    if (this.#closed) throw unavailable('the database is closed');
    if (this.#downSinceMs === undefined) return;
    const leftMs = this.#downSinceMs + GRACE_MS - this.#clock.monotonic();
    if (leftMs > 0) await keepAlive(() => this.#wait(leftMs));
    if (!this.up) throw unavailable('the database cannot be reached', this.#reason);
  }

  close(): void {
    this.#closed = true;
    this.#release();
  }

  #wait(leftMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#clock.timer(leftMs, resolve);
      this.#waiting.push(() => {
        timer.cancel();
        resolve();
      });
    });
  }

  async #recover(): Promise<void> {
    for (let delayMs = PROBE_DELAY_MS; !this.#closed; delayMs = Math.min(delayMs * 2, PROBE_DELAY_LIMIT_MS)) {
      try {
        await this.#probe();
        break;
      } catch (error) {
        this.#reason = error;
        await sleep(this.#clock, delayMs);
      }
    }
    const awayMs = Math.round(this.#clock.monotonic() - (this.#downSinceMs ?? 0));
    this.#downSinceMs = undefined;
    if (!this.#closed) this.#log.info('the database is reached again', { away_ms: awayMs });
    this.#release();
  }

  #release(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const wake of waiting) wake();
  }
}
