/** The responses that this process runs. While it lives it renews its claims; when it dies they end, and so do its responses. */
import { ClaimTime } from '../base/claim-time.ts';
import type { Clock, Timer } from '../base/clock.ts';
import { uuidv7 } from '../base/ids.ts';
import type { Database } from '../storage/database.ts';
import { renewClaims } from './store.ts';

/** How long a response of a dead process is shown as running. */
const CLAIM_MS = 20_000;
const RENEW_MS = 5_000;

export class Claims {
  readonly id: string;
  readonly #database: Database;
  readonly #clock: Clock;
  /** What to do when the response is no longer to be run: it was cancelled or deleted. */
  readonly #held = new Map<string, () => void>();
  #timer: Timer | undefined;
  readonly #time: ClaimTime;

  constructor({ database, clock }: { database: Database; clock: Clock }) {
    this.#database = database;
    this.#clock = clock;
    this.id = uuidv7(clock.now());
    this.#time = new ClaimTime(clock, RENEW_MS);
  }

  /** The time by which claims have ended. */
  now(): number {
    return this.#time.now();
  }

  /** Until when a response that begins now is claimed. */
  until(): Date {
    return new Date(this.#clock.now() + CLAIM_MS);
  }

  hold(id: string, ended: () => void = () => {}): void {
    this.#held.set(id, ended);
    this.#timer ??= this.#clock.timer(RENEW_MS, () => void this.#renew());
  }

  release(id: string): void {
    this.#held.delete(id);
    if (this.#held.size === 0) this.close();
  }

  close(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  async #renew(): Promise<void> {
    this.#timer?.refresh();
    try {
      const ids = [...this.#held.keys()];
      const left = new Set(await renewClaims(this.#database, this.id, ids, this.until()));
      for (const id of ids) if (!left.has(id)) this.#held.get(id)?.();
    } catch {
      // While the database is away nothing can be renewed.
    }
  }
}
