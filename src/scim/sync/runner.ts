/**
 * Runs sync jobs, one at a time in all of the installation. Every process has a runner; the one that holds the turn works.
 * A process that dies loses it with its connection, and its job is begun anew by the next that looks: by another process
 * within seconds, by itself when it starts again.
 */
import type { Clock, Timer } from '../../base/clock.ts';
import type { ScimSource } from '../../base/config.ts';
import { GatewayError } from '../../base/errors.ts';
import { type Log, redact } from '../../base/log.ts';
import type { Egress } from '../../egress/index.ts';
import type { Changes, Database, Queryable } from '../../storage/database.ts';
import { type Counts, recompute, takeDirectory } from './apply.ts';
import { readDirectory, SourceError } from './source.ts';
import * as store from './store.ts';

/** Announced when there is a job to do. */
export const JOBS_TOPIC = 'scim.jobs';

export interface RunnerParts {
  database: Database;
  /** What jobs write through, beside the requests that do. */
  writer: Database;
  changes: Changes;
  egress: Egress;
  clock: Clock;
  log: Log;
  /** As configured now; null: nothing is pulled. */
  source(): ScimSource | null;
}

/** How soon to look again at a job that another process has, or that the database's absence kept from ending. */
const LOOK_AGAIN_MS = 2_000;
const MAX_ATTEMPTS = 3;

export class SyncRunner {
  readonly #parts: RunnerParts;
  readonly #leaving = new AbortController();
  #work: Promise<void> | undefined;
  #again = false;
  #timer: Timer | undefined;

  constructor(parts: RunnerParts) {
    this.#parts = parts;
    parts.changes.subscribe(JOBS_TOPIC, () => this.wake());
  }

  /** Looks for jobs, now or when the one at hand is done. */
  wake(): void {
    if (this.#leaving.signal.aborted) return;
    if (this.#work) {
      this.#again = true;
      return;
    }
    this.#timer?.cancel();
    this.#work = this.#workOff().finally(() => {
      this.#work = undefined;
      if (this.#again) {
        this.#again = false;
        this.wake();
      }
    });
  }

  /** A job that is not done stays for another process, or the next start. */
  async close(): Promise<void> {
    this.#leaving.abort();
    this.#timer?.cancel();
    await this.#work;
  }

  async #workOff(): Promise<void> {
    try {
      while (!this.#leaving.signal.aborted) {
        const found = await this.#parts.database.transaction((tx) => this.#oneJob(tx));
        if (found === 'none') return;
        if (found === 'busy') return this.#lookLater();
      }
    } catch (error) {
      if (this.#leaving.signal.aborted) return;
      this.#parts.log.warn('a sync job is left for later', { reason: (error as Error).message });
      this.#lookLater();
    }
  }

  #lookLater(): void {
    this.#timer = this.#parts.clock.timer(LOOK_AGAIN_MS, () => this.wake());
  }

  async #oneJob(tx: Queryable): Promise<'done' | 'none' | 'busy'> {
    const { database, clock } = this.#parts;
    // First of all, so that nobody takes a turn, and a lock, for nothing.
    const waiting = await store.oldestUnfinished(tx);
    if (!waiting) return 'none';
    if (!(await store.takeTurn(tx))) return 'busy';
    // Who had the turn before may have done it.
    const job = await store.oldestUnfinished(tx);
    if (!job) return 'none';
    const now = () => new Date(clock.now());
    if (job.attempts >= MAX_ATTEMPTS) {
      const errorMessage = `the job was interrupted ${job.attempts} times`;
      await store.endJob(database, job.id, { syncedGroups: null, deletedGroups: null, errorMessage }, now());
      return 'done';
    }
    await store.beginJob(database, job.id, now());
    const outcome = await this.#outcomeOf(job, tx);
    await store.endJob(database, job.id, outcome, now());
    return 'done';
  }

  /** Throws what only says that the job cannot go on now. */
  async #outcomeOf(job: store.StoredJob, tx: Queryable): Promise<store.Outcome> {
    try {
      return { ...(await this.#run(job, () => store.checkTurn(tx))), errorMessage: null };
    } catch (error) {
      const passing = error instanceof GatewayError && error.status >= 500;
      if (this.#leaving.signal.aborted || passing) throw error;
      const known = error instanceof SourceError || error instanceof GatewayError;
      if (!known) this.#parts.log.error('a sync job failed', { job: job.id, error });
      const errorMessage = known ? error.message : 'internal error';
      return { syncedGroups: null, deletedGroups: null, errorMessage };
    }
  }

  async #run({ organizationId }: store.StoredJob, proceed: () => Promise<void>): Promise<Counts> {
    const { writer, changes, clock, egress } = this.#parts;
    const parts = { database: writer, changes, clock, organizationId };
    const source = this.#parts.source();
    if (source === null) return recompute(parts);
    redact(source.token.reveal());
    const directory = await readDirectory({ egress, source, signal: this.#leaving.signal, proceed });
    return takeDirectory(parts, directory);
  }
}
