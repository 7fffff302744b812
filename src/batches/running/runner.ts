/**
 * The batches of one process. It looks for unfinished ones, opens a run for each (`run.ts`), and whenever there is room for
 * another item, lets the batch whose turn it is (`turns.ts`) begin one, unless interactive requests come first
 * (`priority.ts`). A batch of which nothing is left to run moves on to its next state (`conclude.ts`).
 *
 * All processes do the same with the same batches. A dead process is replaced when its claims on items end.
 */
import { ClaimTime } from '../../base/claim-time.ts';
import { loopBusyMs, sleep, type Timer } from '../../base/clock.ts';
import { type CallbackJobs, type CallbackParts, callbackJobs } from '../../callbacks/index.ts';
import { RequestsInFlight } from '../../inference/index.ts';
import type { JobKind, Jobs } from '../../jobs/index.ts';
import type { Changes, Queryable } from '../../storage/database.ts';
import { batchSubjects } from '../callbacks/event.ts';
import { begin, conclude } from '../conclude.ts';
import { tidyJob } from '../jobs.ts';
import { type NativeJobs, type NativeParts, nativeJobs, planNative } from '../native/index.ts';
import { type FileJobs, fileJobs } from '../openai/jobs.ts';
import type { ReadParts } from '../openai/read-input.ts';
import type { WriteParts } from '../openai/write-files.ts';
import * as store from '../store.ts';
import { Priority } from './priority.ts';
import { BatchRun, type Held, RENEW_MS } from './run.ts';
import { Turns } from './turns.ts';

/** Announced with the id of a batch that was created or cancelled, or of which a native batch has ended. */
const TOPIC = 'batches';
const LOOK_MS = 2_000;
/** Batches that a process works on side by side. */
const MOST_OPEN = 64;
/** The part of `MOST_OPEN` that is reserved for batches of workspaces that have none open. */
const RESERVED = 8;
/** When more are waiting, a batch makes room for others after this time. */
const TURN_MS = 60_000;
/** A batch is checked at least this often. */
const LONGEST_LOOK_MS = 60_000;
/** After a failure. */
const AGAIN_MS = 5_000;
/** How long closing waits; what has not ended then is taken by others when its claim ends. */
const CLOSE_MS = 5_000;

interface OpenRun {
  run: BatchRun;
  /** Monotonic. */
  since: number;
}

interface RunnerParts extends NativeParts, ReadParts, WriteParts {
  changes: Changes;
  callbacks: CallbackParts;
}

export class BatchRunner {
  /** Background jobs, to be registered. */
  readonly kinds: readonly JobKind[];
  readonly #parts: RunnerParts;
  readonly #native: NativeJobs;
  readonly #callbacks: CallbackJobs;
  readonly #files: FileJobs;
  readonly #most: number;
  readonly #turns: Turns<BatchRun>;
  readonly #priority: Priority;
  readonly #held: Held = { bytes: 0 };
  readonly #runs = new Map<string, OpenRun>();
  /** Batches that are being opened or concluded. */
  readonly #busy = new Map<string, Promise<void>>();
  /** Batches with nothing to do before a moment, monotonic. */
  readonly #notBefore = new Map<string, number>();
  readonly #closing = new AbortController();
  #looking: Promise<void> | undefined;
  #lookAgain = false;
  #timer: Timer | undefined;
  #advancing: Timer | undefined;

  readonly #ended = async (tx: Queryable, id: string): Promise<void> => {
    await this.#callbacks.ended(tx, id);
    await this.#files.ended(tx, id);
  };

  constructor(given: Omit<RunnerParts, 'claimTime'>, jobs: Pick<Jobs, 'send'>) {
    const { clock, inference, changes } = given;
    const parts = { ...given, claimTime: new ClaimTime(clock, RENEW_MS) };
    const { inFlight: interactive } = inference;
    // Items are counted apart, so that the others are the interactive requests.
    const inFlight = new RequestsInFlight(inference.log);
    const concurrency = inference.concurrency.background();
    this.#parts = { ...parts, inference: { ...inference, inFlight, concurrency } };
    this.#native = nativeJobs(this.#parts, jobs, (tx, id) => this.announce(tx, id));
    this.#callbacks = callbackJobs(parts.callbacks, batchSubjects(parts.callbacks.database), jobs);
    this.#files = fileJobs(parts, jobs, (tx, id) => this.announce(tx, id));
    const tidy = tidyJob(parts, [this.#native, this.#callbacks, this.#files]);
    this.kinds = [this.#native.kind, this.#callbacks.kind, ...this.#files.kinds, tidy];
    this.#most = inference.limits.batchRequests;
    this.#turns = new Turns(this.#most);
    this.#priority = new Priority(clock, {
      get open() {
        return interactive.open;
      },
      get begun() {
        return interactive.begun;
      },
      busyMs: loopBusyMs,
    });
    changes.subscribe(TOPIC, (id) => this.#announced(id));
  }

  start(): void {
    this.#timer = this.#parts.clock.timer(LOOK_MS, () => {
      this.#timer?.refresh();
      this.#look();
    });
    this.#look();
  }

  /** Announces the batch to all processes when `tx` commits. */
  async announce(tx: Queryable, id: string): Promise<void> {
    await this.#parts.changes.announce(tx, TOPIC, id);
  }

  /** Starts to read the input file of a batch when `tx` commits. Its items begin when all of them are there. */
  startReading(tx: Queryable, id: string): Promise<void> {
    return this.#files.startReading(tx, id);
  }

  /** Returns all items that do not end within a moment. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#timer?.cancel();
    this.#advancing?.cancel();
    await this.#looking;
    for (const { run } of this.#runs.values()) run.close();
    const closesAt = this.#parts.clock.monotonic() + CLOSE_MS;
    while ((this.#runs.size > 0 || this.#busy.size > 0) && this.#parts.clock.monotonic() < closesAt) {
      this.#advance();
      await Promise.race([...this.#busy.values(), sleep(this.#parts.clock, 50)]);
    }
  }

  #announced(id: string | null): void {
    if (this.#timer === undefined || this.#closing.signal.aborted) return;
    if (id === null) this.#notBefore.clear();
    else {
      this.#notBefore.delete(id);
      // It was cancelled.
      this.#runs.get(id)?.run.leave();
      // What is happening may not know it yet.
      void this.#busy.get(id)?.then(() => this.#announced(id));
    }
    this.#look();
  }

  #look(): void {
    if (this.#closing.signal.aborted) return;
    if (this.#looking !== undefined) {
      this.#lookAgain = true;
      return;
    }
    this.#looking = this.#lookOnce()
      // The database is away.
      .catch(() => {})
      .finally(() => {
        this.#looking = undefined;
        if (this.#lookAgain) {
          this.#lookAgain = false;
          this.#look();
        }
      });
  }

  async #lookOnce(): Promise<void> {
    const { database, clock } = this.#parts;
    const now = clock.monotonic();
    for (const [id, at] of this.#notBefore) if (at <= now) this.#notBefore.delete(id);
    const known = [...this.#runs.keys(), ...this.#busy.keys(), ...this.#notBefore.keys()];
    const found = await store.unfinishedBatches(database, known, MOST_OPEN);
    if (this.#closing.signal.aborted) return;
    const workspaces = new Set([...this.#runs.values()].map(({ run }) => run.workspaceId));
    let isWaiting = false;
    for (const { id, workspaceId } of found) {
      const places = workspaces.has(workspaceId) ? MOST_OPEN - RESERVED : MOST_OPEN;
      if (this.#runs.size + this.#busy.size < places) {
        workspaces.add(workspaceId);
        this.#keepBusy(id, this.#open(id));
      } else isWaiting = true;
    }
    if (!isWaiting) return;
    for (const { run, since } of this.#runs.values()) if (now - since >= TURN_MS) run.leave();
  }

  #keepBusy(id: string, work: Promise<void>): void {
    const done = work
      .catch((error: unknown) => {
        const { clock, database, inference } = this.#parts;
        this.#notBefore.set(id, clock.monotonic() + AGAIN_MS);
        if (database.up) inference.log.warn('a batch cannot move on', { batch: id, error });
      })
      .finally(() => {
        this.#busy.delete(id);
        this.#advance();
      });
    this.#busy.set(id, done);
  }

  async #open(id: string): Promise<void> {
    const { database, clock } = this.#parts;
    const batch = await begin({ ...this.#parts, ended: this.#ended }, id);
    if (batch?.state !== 'in_progress') return this.#conclude(id);
    await store.markSeen(database, id, new Date(clock.now()));
    const pauseMs = await planNative(batch, this.#parts, this.#native.start, this.#closing.signal);
    if (pauseMs !== undefined) {
      this.#notBefore.set(id, clock.monotonic() + pauseMs);
      return;
    }
    if (this.#closing.signal.aborted) return;
    const run = new BatchRun(batch, this.#parts, {
      most: this.#most,
      held: this.#held,
      changed: () => this.#advance(),
      signal: this.#closing.signal,
    });
    this.#runs.set(id, { run, since: clock.monotonic() });
    this.#turns.add(run);
  }

  async #end(run: BatchRun): Promise<void> {
    await run.end();
    if (!this.#closing.signal.aborted) await this.#conclude(run.batch.id, run.pauseMs);
  }

  async #conclude(id: string, pauseMs = 0): Promise<void> {
    const conclusion = await conclude({ ...this.#parts, ended: this.#ended }, id);
    if (conclusion === 'over') return;
    if (conclusion.isCancelling) await this.#native.wake(id);
    const afterMs = Math.min(LONGEST_LOOK_MS, Math.max(conclusion.lookAfterMs, pauseMs));
    this.#notBefore.set(id, this.#parts.clock.monotonic() + afterMs);
  }

  /** Begins what may begin now, and ends the runs that are idle. */
  #advance(): void {
    for (const run of this.#turns.runs) {
      run.refill();
      if (!run.idle) continue;
      this.#runs.delete(run.batch.id);
      this.#turns.delete(run);
      this.#keepBusy(run.batch.id, this.#end(run));
    }
    if (this.#closing.signal.aborted || this.#advancing !== undefined) return;
    for (let run = this.#turns.next(); run !== undefined; run = this.#turns.next()) {
      const waitMs = this.#priority.admit();
      if (waitMs > 0) {
        this.#advanceAfter(waitMs);
        return;
      }
      this.#turns.begun(run);
      run.begin();
      run.refill();
    }
  }

  #advanceAfter(waitMs: number): void {
    this.#advancing = this.#parts.clock.timer(waitMs, () => {
      this.#advancing = undefined;
      this.#advance();
    });
  }
}
