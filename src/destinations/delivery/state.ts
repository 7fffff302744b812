/** Counts what became of deliveries, and adds it to the states in the database now and then. */
import type { Clock, Timer } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { Database } from '../../storage/database.ts';
import { addToState, type StateChange } from '../store.ts';

const WRITE_MS = 1_000;
const RETRY_MS = 10_000;

export class States {
  readonly #parts: { database: Database; clock: Clock; log: Log };
  readonly #changes = new Map<string, StateChange>();
  #timer: Timer | undefined;
  #writing: Promise<void> | undefined;
  /** Records dropped since this process started. */
  dropped = 0;

  constructor(parts: { database: Database; clock: Clock; log: Log }) {
    this.#parts = parts;
  }

  delivered(id: string, count: number): void {
    const change = this.#of(id);
    change.delivered += count;
    change.deliveredAt = new Date(this.#parts.clock.now());
  }

  failed(id: string, message: string): void {
    const change = this.#of(id);
    change.failedAt = new Date(this.#parts.clock.now());
    change.lastError = message;
  }

  drop(id: string, count: number, message: string): void {
    this.dropped += count;
    this.failed(id, message);
    this.#of(id).dropped += count;
  }

  async flush(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined;
    });
    await this.#writing;
  }

  #of(id: string): StateChange {
    let change = this.#changes.get(id);
    if (change === undefined) {
      change = { delivered: 0, dropped: 0, deliveredAt: null, failedAt: null, lastError: null };
      this.#changes.set(id, change);
    }
    this.#timer ??= this.#parts.clock.timer(WRITE_MS, () => void this.flush());
    return change;
  }

  /** For the next write. What has happened since is newer. */
  #restore(id: string, change: StateChange): void {
    const since = this.#changes.get(id);
    this.#changes.set(id, {
      delivered: change.delivered + (since?.delivered ?? 0),
      dropped: change.dropped + (since?.dropped ?? 0),
      deliveredAt: since?.deliveredAt ?? change.deliveredAt,
      failedAt: since?.failedAt ?? change.failedAt,
      lastError: since?.lastError ?? change.lastError,
    });
    this.#timer ??= this.#parts.clock.timer(RETRY_MS, () => void this.flush());
  }

  async #write(): Promise<void> {
    for (const [id, change] of [...this.#changes]) {
      this.#changes.delete(id);
      try {
        await addToState(this.#parts.database, id, change);
      } catch (cause) {
        this.#parts.log.warn('the state of a destination could not be written', { destination: id, cause });
        this.#restore(id, change);
        return;
      }
    }
  }
}
