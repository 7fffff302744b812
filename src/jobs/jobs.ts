/** The job runner of one process. */
import { isDeepStrictEqual } from 'node:util';
import type { PgBoss, QueueResult, Job as StoredJob } from 'pg-boss';
import type { Clock, Timer } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { Changes, Database, PooledDatabase, Queryable } from '../storage/database.ts';
import { errorCode } from '../storage/unavailable.ts';
import { openBoss, statementsOf } from './boss.ts';

/** Announced with the name of the kind when a job was sent, so that no process has to poll often. */
const JOBS_TOPIC = 'jobs';

/** Work of one kind. Describe it once, where its folder is wired. */
export interface JobKind<Data extends object = object> {
  /** `folder.verb`. It is also the name of the queue and must not change, since queued jobs carry it. */
  readonly name: string;
  /** `many`: jobs of this kind run side by side. `one`: one at a time in the whole installation. */
  readonly runs: 'many' | 'one';
  /** Jobs of this kind that one process runs at the same time. Default 1. */
  readonly concurrency?: number;
  /** Longest run in seconds, after which it counts as failed. Default 900. */
  readonly expireSeconds?: number;
  /** How often a failed run is retried: after a second, then after longer and longer delays. Default 10. */
  readonly retries?: number;
  /** Seconds between two polls for jobs that are not announced (delayed, retried). Default 5. */
  readonly pollSeconds?: number;
  /** Each process sends a job at this interval, in milliseconds, unless one already waits. */
  readonly everyMs?: number;
  /** Each process sends a job when it begins to run jobs: work may be left from a process that died. */
  readonly atStart?: boolean;
  /** If it throws, the job has failed and is retried. */
  run(job: Job<Data>): Promise<void>;
}

export interface Job<Data extends object = object> {
  readonly data: Data;
  /** 1 for the first run. */
  readonly attempt: number;
  /** Aborted when the process closes or the job has run for too long. */
  readonly signal: AbortSignal;
}

export interface SendOptions {
  /** The job exists when this transaction commits. */
  tx?: Queryable;
  /** Earliest start, in seconds from now. */
  afterSeconds?: number;
}

/** `sent`: as soon as any process sends a job; `own`: as soon as this one does. */
export type StartOfJobs = 'now' | 'sent' | 'own';

export interface Jobs {
  /** Before `start`. */
  register<Data extends object>(kind: JobKind<Data>): void;
  /**
   * Begins to run jobs. Resolves at once; keeps trying while the database is away.
   * @param when other than `now`: for tests whose gateway lives a moment, or leaves the jobs to another
   */
  start(when?: StartOfJobs): void;
  /** Resolves when the job is stored. Data must be JSON and small: ids, not contents. */
  send<Data extends object>(kind: JobKind<Data>, data: Data, options?: SendOptions): Promise<void>;
  /** True while the tables of the job runner are missing or cannot be used, although the database can be reached. */
  readonly failing: boolean;
  /** Running jobs are aborted and returned to the queue; no new one begins. */
  close(): Promise<void>;
}

export interface JobsOptions {
  database: PooledDatabase;
  changes: Changes;
  clock: Clock;
  log: Log;
}

export function createJobs(options: JobsOptions): Jobs {
  return new BossJobs(options);
}

/** The shortest that pg-boss takes. */
const HEARTBEAT_SECONDS = 10;
const EXPIRE_SECONDS = 900;
const RETRIES = 10;
/** Doubles with each attempt. Short at first: it also delays the takeover from a killed process. */
const RETRY_SECONDS = 1;
const RETRY_MOST_SECONDS = 3600;
const POLL_SECONDS = 5;
/** Finished jobs contain nothing that the folders' own tables do not have. */
const KEPT_SECONDS = 3600;
const START_AGAIN_MS = 2_000;
/** Of pg-boss, in each process. */
const CONNECTIONS = 3;
/** How long an error of the running job runner counts. It looks at its tables every two seconds. */
const ERROR_COUNTS_MS = 15_000;
/** SQLSTATE classes of missing schemas and tables, and of missing privileges. */
const UNUSABLE_TABLES = /^(?:3F|42)/;
/** How long closing waits for handlers after it has aborted them. */
const CLOSE_MS = 5_000;

/**
 * `stately` drops a job while another one waits. That is safe only outside of transactions: the waiting job may run before
 * a transaction commits, and would not see what the dropped one was sent for.
 */
function policyOf({ runs, everyMs }: JobKind): 'stately' | 'singleton' | 'standard' {
  if (everyMs !== undefined) return 'stately';
  return runs === 'one' ? 'singleton' : 'standard';
}

class BossJobs implements Jobs {
  readonly #options: JobsOptions;
  /** Transactions that send a job wait for the start of pg-boss, and may hold every other connection. */
  readonly #own: Database;
  readonly #kinds = new Map<string, JobKind>();
  readonly #closing = new AbortController();
  readonly #timers: Timer[] = [];
  readonly #running = new Set<Promise<void>>();
  /** Of pg-boss: their ids, by the name of the kind. */
  readonly #workers = new Map<string, string[]>();
  /** For the first job of this process, or of any. */
  #waits: false | 'sent' | 'own' = false;
  #boss: Promise<PgBoss> | undefined;
  #started: PgBoss | undefined;
  #startFails = false;
  /** Monotonic time of the last error about the tables. */
  #errorAt = Number.NEGATIVE_INFINITY;

  constructor(options: JobsOptions) {
    this.#options = options;
    this.#own = options.database.apart(CONNECTIONS);
    options.changes.subscribe(JOBS_TOPIC, (name) => this.#wake(name));
  }

  register<Data extends object>(kind: JobKind<Data>): void {
    if (this.#kinds.has(kind.name)) throw new Error(`two kinds of job are called ${kind.name}`);
    this.#kinds.set(kind.name, kind as JobKind<object>);
  }

  start(when: StartOfJobs = 'now'): void {
    if (when === 'now') this.#begin();
    else this.#waits = when;
  }

  #begin(): void {
    this.#waits = false;
    void this.#open().catch(() => {});
    for (const kind of this.#kinds.values()) if (kind.everyMs !== undefined) this.#repeat(kind, kind.everyMs);
  }

  async send<Data extends object>(kind: JobKind<Data>, data: Data, options: SendOptions = {}): Promise<void> {
    if (this.#waits !== false) this.#begin();
    const boss = await this.#open();
    const { tx, afterSeconds } = options;
    if (tx !== undefined && kind.everyMs !== undefined)
      throw new Error(`${kind.name} repeats: no transaction needs it`);
    if (tx === undefined) await this.#sendOwn(boss, kind, data, afterSeconds);
    else await this.#sendIn(tx, boss, kind, data, afterSeconds);
  }

  get failing(): boolean {
    const { database, clock } = this.#options;
    return database.up && (this.#startFails || clock.monotonic() - this.#errorAt < ERROR_COUNTS_MS);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    for (const timer of this.#timers) timer.cancel();
    const boss = await this.#boss?.catch(() => undefined);
    await boss?.stop({ graceful: true, timeout: CLOSE_MS });
    await Promise.allSettled(this.#running);
    await this.#own.close();
  }

  #sendOwn(boss: PgBoss, kind: Pick<JobKind, 'name'>, data: object, afterSeconds?: number): Promise<void> {
    return this.#own.transaction((tx) => this.#sendIn(tx, boss, kind, data, afterSeconds));
  }

  async #sendIn(
    tx: Queryable,
    boss: PgBoss,
    { name }: Pick<JobKind, 'name'>,
    data: object,
    afterSeconds: number | undefined,
  ): Promise<void> {
    await boss.send(name, data, {
      db: statementsOf(tx),
      ...(afterSeconds !== undefined && { startAfter: afterSeconds }),
    });
    await this.#options.changes.announce(tx, JOBS_TOPIC, name);
  }

  /** One attempt to start at a time. After a failure, the next caller or a timer tries again. */
  #open(): Promise<PgBoss> {
    if (this.#closing.signal.aborted) return Promise.reject(new Error('the job runner is closed'));
    this.#boss ??= this.#startBoss().catch((error: unknown) => {
      this.#boss = undefined;
      this.#startFails = true;
      if (!this.#closing.signal.aborted) {
        this.#options.log.warn('the job runner cannot start yet', { error });
        this.#timers.push(this.#options.clock.timer(START_AGAIN_MS, () => void this.#open().catch(() => {})));
      }
      throw error;
    });
    return this.#boss;
  }

  async #startBoss(): Promise<PgBoss> {
    const { database, clock, log } = this.#options;
    const boss = await openBoss(this.#own);
    boss.on('error', (error) => {
      if (UNUSABLE_TABLES.test(errorCode(error) ?? '')) this.#errorAt = clock.monotonic();
      if (database.up && !this.#closing.signal.aborted) log.warn('the job runner reported an error', { error });
    });
    await boss.start();
    this.#started = boss;
    try {
      const queues = new Map((await boss.getQueues()).map((queue) => [queue.name, queue]));
      for (const kind of this.#kinds.values()) await this.#work(boss, kind, queues.get(kind.name));
      for (const kind of this.#kinds.values()) if (kind.atStart) await this.#sendOwn(boss, kind, {});
    } catch (error) {
      await boss.stop({ graceful: false }).catch(() => {});
      throw error;
    }
    this.#startFails = false;
    return boss;
  }

  async #work(boss: PgBoss, kind: JobKind, existing: QueueResult | undefined): Promise<void> {
    const retries = kind.retries ?? RETRIES;
    const settings = {
      heartbeatSeconds: HEARTBEAT_SECONDS,
      expireInSeconds: kind.expireSeconds ?? EXPIRE_SECONDS,
      deleteAfterSeconds: KEPT_SECONDS,
      retryLimit: retries,
      ...(retries > 0 && { retryDelay: RETRY_SECONDS, retryBackoff: true, retryDelayMax: RETRY_MOST_SECONDS }),
    };
    if (existing === undefined) await boss.createQueue(kind.name, { policy: policyOf(kind), ...settings });
    else if (!isDeepStrictEqual({ ...existing, ...settings }, existing)) await boss.updateQueue(kind.name, settings);
    const options = { pollingIntervalSeconds: kind.pollSeconds ?? POLL_SECONDS };
    // One call for each worker: of workers made in one call, pg-boss would wake only the first.
    const workers: string[] = [];
    for (let number = 0; number < (kind.concurrency ?? 1); number += 1) {
      const worker = await boss.work<object>(kind.name, options, async ([job]) => {
        try {
          if (job !== undefined) await this.#run(kind, job);
        } finally {
          // Many jobs may have been sent while this one ran.
          boss.notifyWorker(worker);
        }
      });
      workers.push(worker);
    }
    this.#workers.set(kind.name, workers);
  }

  async #run(kind: JobKind, { data, retryCount, signal }: StoredJob<object>): Promise<void> {
    const run = kind.run({ data, attempt: retryCount + 1, signal: AbortSignal.any([signal, this.#closing.signal]) });
    this.#running.add(run);
    try {
      await run;
    } catch (error) {
      if (!this.#closing.signal.aborted) this.#options.log.warn('a job failed', { job: kind.name, error });
      throw error;
    } finally {
      this.#running.delete(run);
    }
  }

  /** @param name null: any may have been sent */
  #wake(name: string | null): void {
    if (this.#waits === 'sent' && name !== null) this.#begin();
    for (const [kind, workers] of this.#workers) {
      if (name === null || kind === name) for (const worker of workers) this.#started?.notifyWorker(worker);
    }
  }

  #repeat(kind: JobKind, everyMs: number): void {
    const timer = this.#options.clock.timer(everyMs, () => {
      // While one waits for the database no other is sent, and one that fails is sent again at the next interval.
      this.send(kind, {}).then(again, again);
    });
    const again = () => {
      if (!this.#closing.signal.aborted) timer.refresh();
    };
    this.#timers.push(timer);
  }
}
