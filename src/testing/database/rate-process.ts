/** A process of the gateway as rate limits see it, inside the test's own: it can be stopped dead or lose its database. */
import { systemClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { Limiter } from '../../rate-limits/index.ts';
import { openChanges } from '../../storage/changes.ts';
import type { Target } from '../../storage/connection.ts';
import type { Changes, Database } from '../../storage/database.ts';
import { type Fault, Switch } from './spend-process.ts';

export interface RateWorld {
  database: Database;
  target: Target;
  /** Wall time of every process. */
  now(): number;
}

export class RateProcess {
  readonly limiter: Limiter;
  /** Transactions so far. */
  asked = 0;
  dead = false;
  readonly #power: Switch;
  readonly #changes: Changes;

  constructor(power: Switch, changes: Changes) {
    this.#power = power;
    this.#changes = changes;
    const { database } = power;
    const counted = {
      query: database.query,
      transaction: <T>(work: Parameters<typeof database.transaction<T>>[0]) => {
        this.asked += 1;
        return database.transaction(work);
      },
    };
    this.limiter = new Limiter({
      database: counted,
      changes,
      clock: power.clock,
      log: silentLog,
      recallTimeoutMs: 100,
    });
  }

  static async start({ database, target, now }: RateWorld): Promise<RateProcess> {
    const changes = await openChanges({ target, database, clock: systemClock, log: silentLog });
    return new RateProcess(new Switch(database, now), changes);
  }

  fault(fault: Fault | undefined): void {
    this.#power.fault = fault;
  }

  /** As kill -9: nothing continues, nothing is given back. */
  async kill(): Promise<void> {
    this.dead = true;
    this.#power.off();
    await this.#power.quiet();
    await this.#changes.close();
  }

  async close(): Promise<void> {
    if (this.dead) return;
    this.fault(undefined);
    await this.limiter.close();
    await this.kill();
  }
}
