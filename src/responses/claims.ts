/** The responses that this process runs. While it lives it renews its claims; when it dies they end, and so do its responses. */
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
  readonly #held = new Set<string>();
  #timer: Timer | undefined;

  constructor({ database, clock }: { database: Database; clock: Clock }) {
    this.#database = database;
    this.#clock = clock;
    this.id = uuidv7(clock.now());
  }

  /** Until when a response that begins now is claimed. */
  until(): Date {
    return new Date(this.#clock.now() + CLAIM_MS);
  }

  hold(id: string): void {
    this.#held.add(id);
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
      await renewClaims(this.#database, this.id, [...this.#held], this.until());
    } catch {
      // While the database is away nothing can be renewed.
    }
  }
}
