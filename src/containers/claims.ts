/**
 * One use of a container at a time, over all processes. A use renews its claim. A claim that is not renewed expires, so a process
 * that was killed does not block a container for long.
 */
import { randomUUID } from 'node:crypto';
import { ClaimTime } from '../base/claim-time.ts';
import { type Clock, sleep, type Timer } from '../base/clock.ts';
import { GatewayError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { Database } from '../storage/database.ts';
import type { StoredContainer } from './container.ts';
import * as store from './store.ts';

const CLAIM_MS = 30_000;
export const RENEW_MS = 10_000;
/** How long a use waits for the one before it, which may still be storing its files. */
const WAIT_MS = 20_000;
/** How long listing files waits for a use that may still be storing them. */
const SETTLE_MS = 5_000;
const RETRY_MS = 200;

interface ClaimParts {
  database: Database;
  clock: Clock;
  log: Log;
}

export interface Claim extends store.Hold {
  /** As it was claimed. */
  container: StoredContainer;
}

export class Claims {
  readonly #parts: ClaimParts;
  /** What to do when another use may have the container. */
  readonly #held = new Map<string, () => void>();
  readonly #time: ClaimTime;
  #timer: Timer | undefined;

  constructor(parts: ClaimParts) {
    this.#parts = parts;
    this.#time = new ClaimTime(parts.clock, RENEW_MS);
  }

  /**
   * Waits until the container is free. Undefined if it is gone.
   * @param lost called if the claim could not be renewed in time
   * @throws GatewayError 409 if another use has it for too long
   */
  async take(id: string, name: string, signal: AbortSignal, lost: () => void): Promise<Claim | undefined> {
    const { database, clock } = this.#parts;
    const holder = randomUUID();
    const deadline = clock.monotonic() + WAIT_MS;
    for (;;) {
      signal.throwIfAborted();
      const now = new Date(this.#time.now());
      const container = await store.takeContainer(database, { id, holder }, now, new Date(clock.now() + CLAIM_MS));
      if (container !== undefined) {
        this.#held.set(holder, lost);
        this.#renewLater();
        return { id, holder, container };
      }
      if ((await store.stateOf(database, id, now)) === 'gone') return undefined;
      if (clock.monotonic() > deadline) {
        const message = `the container ${name} is in use by another request; try again later`;
        throw new GatewayError('invalid_request', message, { status: 409 });
      }
      await sleep(clock, RETRY_MS);
    }
  }

  /** Waits until the container is free, for a while. */
  async settled(id: string): Promise<void> {
    const { database, clock } = this.#parts;
    const deadline = clock.monotonic() + SETTLE_MS;
    while ((await store.stateOf(database, id, new Date(this.#time.now()))) === 'held') {
      if (clock.monotonic() > deadline) return;
      await sleep(clock, RETRY_MS);
    }
  }

  /** The use stores what it leaves, or gives up. */
  end({ holder }: store.Hold): void {
    this.#held.delete(holder);
  }

  close(): void {
    this.#timer?.cancel();
  }

  #renewLater(): void {
    this.#timer ??= this.#parts.clock.timer(RENEW_MS, () => {
      this.#timer = undefined;
      void this.#renew();
    });
  }

  async #renew(): Promise<void> {
    const { database, clock, log } = this.#parts;
    const holders = [...this.#held.keys()];
    if (holders.length === 0) return;
    this.#renewLater();
    try {
      const renewed = new Set(await store.renewHolds(database, holders, new Date(clock.now() + CLAIM_MS)));
      for (const holder of holders) {
        const lost = this.#held.get(holder);
        if (renewed.has(holder) || lost === undefined) continue;
        this.#held.delete(holder);
        lost();
      }
    } catch (error) {
      log.warn('cannot renew the claim on containers', { error });
    }
  }
}
