/**
 * A process of the gateway as spend sees it, inside the test's own: it can be stopped dead, and its database connection
 * can fail before or after a commit.
 */
import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { type Clock, systemClock, type Timer } from '../../base/clock.ts';
import { GatewayError } from '../../base/errors.ts';
import { silentLog } from '../../base/log.ts';
import { createSpend, type Spend, type SpendOptions } from '../../spend/index.ts';
import { openChanges } from '../../storage/changes.ts';
import type { Target } from '../../storage/connection.ts';
import type { Changes, Database, Queryable } from '../../storage/database.ts';

export type Fault = 'before commit' | 'after commit' | 'down';

export interface SpendWorld {
  database: Database;
  target: Target;
  dataDir: string;
  /** Wall time of every process. */
  now(): number;
  options?: Partial<SpendOptions>;
}

export class SpendProcess {
  readonly spend: Spend;
  readonly processId: string;
  readonly #switch: Switch;
  readonly #changes: Changes;

  constructor(spend: Spend, processId: string, power: Switch, changes: Changes) {
    this.spend = spend;
    this.processId = processId;
    this.#switch = power;
    this.#changes = changes;
  }

  static async start({ database, target, dataDir, now, options }: SpendWorld): Promise<SpendProcess> {
    const power = new Switch(database, now);
    const changes = await openChanges({ target, database, clock: systemClock, log: silentLog });
    const journals = join(dataDir, 'journal');
    mkdirSync(journals, { recursive: true });
    const before = new Set(readdirSync(journals));
    const spend = await createSpend({
      database: power.database,
      changes,
      clock: power.clock,
      log: silentLog,
      dataDir,
      endOfTurn: power.endOfTurn,
      ...options,
    });
    const processId = readdirSync(journals).find((name) => !before.has(name));
    return new SpendProcess(spend, processId!, power, changes);
  }

  /** What the next transactions meet; undefined for none. */
  fault(fault: Fault | undefined): void {
    this.#switch.fault = fault;
  }

  /** As kill -9: nothing continues, nothing is closed. Its journal stays. */
  async kill(): Promise<void> {
    this.#switch.off();
    await this.#switch.quiet();
    await this.#changes.close();
  }

  async close(): Promise<void> {
    this.fault(undefined);
    await this.spend.close();
    this.#switch.off();
    await this.#changes.close();
  }
}

/** The database, lost after so many more transactions. */
export function faulty(database: Database, transactions: number): Database {
  let left = transactions;
  return {
    up: true,
    query: (text, values) => database.query(text, values),
    transaction: (work) => {
      if (left-- <= 0) return Promise.reject(unreachable());
      return database.transaction(work);
    },
    close: () => Promise.resolve(),
  };
}

/** Between a process and what it runs on: it can lose its database, and be stopped dead. */
export class Switch {
  fault: Fault | undefined;
  readonly clock: Clock;
  readonly database: Database;
  readonly endOfTurn: (run: () => void) => void;
  #on = true;
  readonly #timers = new Set<Timer>();
  readonly #running = new Set<Promise<unknown>>();

  constructor(database: Database, now: () => number) {
    this.clock = {
      now,
      monotonic: () => systemClock.monotonic(),
      timer: (delayMs, run) => {
        const timer = systemClock.timer(delayMs, () => {
          if (this.#on) run();
        });
        this.#timers.add(timer);
        return timer;
      },
    };
    this.endOfTurn = (run) =>
      void setImmediate(() => {
        if (this.#on) run();
      });
    this.database = {
      get up() {
        return database.up;
      },
      query: (text, values) => this.#guard(() => database.query(text, values)),
      transaction: (work) => this.#guard(() => this.#transaction(database, work)),
      close: () => Promise.resolve(),
    };
  }

  off(): void {
    this.#on = false;
    for (const timer of this.#timers) timer.cancel();
  }

  async quiet(): Promise<void> {
    while (this.#running.size > 0) await Promise.allSettled([...this.#running]);
  }

  /** What a dead process hears from its database: nothing, for ever. */
  async #guard<T>(work: () => Promise<T>): Promise<T> {
    if (!this.#on) return new Promise<T>(() => {});
    if (this.fault === 'down') throw unreachable();
    const running = work();
    this.#running.add(running);
    try {
      return await running;
    } finally {
      this.#running.delete(running);
      if (!this.#on) await new Promise<void>(() => {});
    }
  }

  async #transaction<T>(database: Database, work: (tx: Queryable) => Promise<T>): Promise<T> {
    const result = await database.transaction(async (tx) => {
      const done = await work(tx);
      if (this.fault === 'before commit') throw unreachable();
      return done;
    });
    if (this.fault === 'after commit') throw unreachable();
    return result;
  }
}

function unreachable(): GatewayError {
  return new GatewayError('server', 'the database is unreachable', { status: 503, metadata: { retryable: true } });
}
