/**
 * One batch in this process: takes its items in small groups, sends each through the inference pipeline, and writes one
 * result for each. The process claims the items that it takes until a time that it extends as long as it lives. If it
 * dies, other processes take the items after that time. When an item begins is decided by `runner.ts`.
 */
import type { Caller } from '../../access/index.ts';
import type { ClaimTime } from '../../base/claim-time.ts';
import type { Clock, Timer } from '../../base/clock.ts';
import { GatewayError } from '../../base/errors.ts';
import { uuidv7 } from '../../base/ids.ts';
import { type InferenceParts, serve, WholeSink } from '../../inference/index.ts';
import type { Database } from '../../storage/database.ts';
import type { Batch } from '../batch.ts';
import { acceptItem } from '../item.ts';
import * as items from '../items.sql.ts';
import { completedResult, failedResult, itemErrorOf } from '../results/result.ts';
import { ResultWriter } from '../results/writer.ts';
import { findBatch } from '../store.ts';
import { Pace, retryDelayMs } from './pace.ts';
import type { TakesTurns } from './turns.ts';

export interface RunParts {
  database: Database;
  clock: Clock;
  /** By which claims on items and native batches have ended. */
  claimTime: Pick<ClaimTime, 'now'>;
  inference: InferenceParts;
  /** The current caller of a key. Rejects with GatewayError 401 when the key may not be used. */
  callerOfKey(hash: string): Caller | Promise<Caller>;
}

/** Shared by the runs of a process. */
export interface Held {
  /** Of the items that are taken and have no result yet, and at most of those that are being taken. */
  bytes: number;
}

interface RunOptions {
  /** Items of this batch that run at once. */
  most: number;
  held: Held;
  /** Called when an item may begin, or when the run may be over. */
  changed(): void;
  /** Aborted when the process closes. */
  signal: AbortSignal;
}

/** How long items stay claimed without a renewal; another process replaces a killed one after about 12 s. */
const CLAIM_MS = 10_000;
export const RENEW_MS = 2_500;
/** Of the items that are taken at once, except for the first. */
const CLAIMED_BYTES = 4 * 1024 * 1024;
/** Bodies in memory, of all runs; above it, no further items are taken. */
const HELD_BYTES = 32 * 1024 * 1024;
const FIRST_AT_ONCE = 4;
/** A batch that must wait for longer makes room for others. */
const LONGEST_PAUSE_MS = 5_000;
/** Runs of an item that end in a refusal for load, or with the process, after which the item fails. */
const MOST_ATTEMPTS = 30;
/** How long running items may take to end when the process closes. */
const CLOSING_MS = 2_000;
const TOO_BUSY = new Set([429, 503, 529]);

export class BatchRun implements TakesTurns {
  readonly batch: Batch;
  readonly #parts: RunParts;
  readonly #options: RunOptions;
  readonly #claim: string;
  readonly #pace: Pace;
  readonly #writer: ResultWriter;
  readonly #renewal: Timer;
  readonly #waiting: items.ClaimedItem[] = [];
  readonly #running = new Map<number, WholeSink>();
  #givingBack: Promise<void> = Promise.resolve();
  #taking = false;
  /** There was nothing to take. */
  #exhausted = false;
  #leaving = false;
  /** Monotonic time before which no item begins, after a refusal for load. */
  #notBefore = Number.NEGATIVE_INFINITY;

  constructor(batch: Batch, parts: RunParts, options: RunOptions) {
    const { clock, database, inference } = parts;
    this.batch = batch;
    this.#parts = parts;
    this.#options = options;
    this.#claim = uuidv7(clock.now());
    this.#pace = new Pace({ first: Math.min(FIRST_AT_ONCE, options.most), most: options.most });
    this.#writer = new ResultWriter(batch.id, { database, clock, log: inference.log }, options.signal);
    this.#renewal = clock.timer(RENEW_MS, () => {
      this.#renewal.refresh();
      void this.#renew();
    });
  }

  get workspaceId(): string {
    return this.batch.workspaceId;
  }

  get running(): number {
    return this.#running.size;
  }

  get ready(): boolean {
    if (this.#writer.failing || this.pauseMs > 0) return false;
    return this.#waiting.length > 0 && this.#running.size < this.#pace.limit;
  }

  /** Nothing is left that this run could do now. */
  get idle(): boolean {
    if (this.#waiting.length > 0 || this.#running.size > 0 || this.#taking) return false;
    return this.#leaving || this.#exhausted;
  }

  /** How long no item begins, after a refusal for load. */
  get pauseMs(): number {
    return Math.max(0, this.#notBefore - this.#parts.clock.monotonic());
  }

  /** Begins the next item. */
  begin(): void {
    const item = this.#waiting.shift();
    if (item === undefined) return;
    if (this.#parts.clock.now() >= this.batch.expiresAt.getTime()) {
      this.#waiting.unshift(item);
      this.leave();
    } else void this.#runItem(item);
  }

  /** Takes further items in the background when few are left. */
  refill(): void {
    const { held } = this.#options;
    if (this.#taking || this.#leaving || this.#exhausted) return;
    if (this.#waiting.length >= this.#pace.limit || held.bytes >= HELD_BYTES) return;
    this.#taking = true;
    held.bytes += CLAIMED_BYTES;
    void this.#take(2 * this.#pace.limit - this.#waiting.length).finally(() => {
      held.bytes -= CLAIMED_BYTES;
      this.#taking = false;
      if (this.#leaving) this.#giveBack();
      this.#options.changed();
    });
  }

  /** Begins no further item, and returns those that are waiting. */
  leave(): void {
    this.#leaving = true;
    this.#giveBack();
    this.#options.changed();
  }

  /** The process closes: abandons items that do not end within a moment. */
  close(): void {
    this.leave();
    this.#parts.clock.timer(CLOSING_MS, () => {
      for (const sink of this.#running.values()) sink.close();
    });
  }

  /** Once it is idle. Resolves when everything is written. Never rejects. */
  async end(): Promise<void> {
    this.#renewal.cancel();
    await Promise.all([this.#writer.written(), this.#givingBack]);
  }

  async #renew(): Promise<void> {
    const { database, clock } = this.#parts;
    this.#exhausted = false;
    try {
      await items.renewClaim(database, this.batch.id, this.#claim, new Date(clock.now() + CLAIM_MS));
      if ((await findBatch(database, this.batch.id))?.state !== 'in_progress') this.leave();
    } catch {
      // While the database is away nothing can be renewed; then an item may run twice.
    }
    this.#options.changed();
  }

  async #take(count: number): Promise<void> {
    const { database, clock, claimTime } = this.#parts;
    const [now, until] = [new Date(claimTime.now()), new Date(clock.now() + CLAIM_MS)];
    const choice = { claim: this.#claim, now, until };
    const taken = await database
      .transaction((tx) => items.claimItems(tx, this.batch.id, { ...choice, count, bytes: CLAIMED_BYTES }))
      // Tried again with the next renewal.
      .catch(() => []);
    this.#exhausted = taken.length === 0;
    for (const item of taken) {
      if (item.attempts > MOST_ATTEMPTS) {
        const error = new GatewayError('server', `the request was started ${MOST_ATTEMPTS} times and never finished`);
        this.#writer.add(failedResult(item.position, itemErrorOf(error)));
        continue;
      }
      this.#options.held.bytes += item.body.length;
      this.#waiting.push(item);
    }
  }

  async #runItem(item: items.ClaimedItem): Promise<void> {
    const sink = new WholeSink();
    this.#running.set(item.position, sink);
    try {
      const error = await this.#answer(item, sink);
      if (error === undefined) {
        this.#pace.succeeded();
        this.#writer.add(completedResult(item.position, sink));
      } else await this.#failed(item, sink, error);
    } catch (cause) {
      this.#parts.inference.log.error('an item of a batch failed', { batch: this.batch.id, cause });
      this.#writer.add(failedResult(item.position, itemErrorOf(new GatewayError('server', 'internal error'))));
    } finally {
      this.#running.delete(item.position);
      this.#options.held.bytes -= item.body.length;
      this.#options.changed();
    }
  }

  /** Returns the error instead of an answer. */
  async #answer({ body }: items.ClaimedItem, sink: WholeSink): Promise<GatewayError | undefined> {
    const { callerOfKey, inference, clock } = this.#parts;
    try {
      const caller = await callerOfKey(this.batch.keyHash);
      const request = acceptItem(body, this.batch, caller, clock.now());
      await serve(sink.observed(request), sink, inference);
      if (sink.failure !== undefined) return sink.failure;
      return sink.status === 200 ? undefined : new GatewayError('server', 'the request was aborted');
    } catch (error) {
      if (error instanceof GatewayError) return error;
      throw error;
    }
  }

  async #failed(item: items.ClaimedItem, sink: WholeSink, error: GatewayError): Promise<void> {
    // The process closes; another one runs the item again.
    if (this.#options.signal.aborted || sink.closed) return this.#later([item], 0, true);
    if (TOO_BUSY.has(error.status)) {
      // Nothing was sent if there is no row: a rate limit, the database or the journal of the gateway itself refuses, and
      // that is no fault of the item.
      const wasSent = sink.row !== undefined;
      if (!wasSent || item.attempts < MOST_ATTEMPTS) return this.#slowDown(item, error, wasSent);
    }
    if (error.status === 402 && this.#running.size > 1) {
      // The reservations of the others are mostly larger than what they will have cost.
      this.#pace.alone();
      return this.#again(item);
    }
    this.#writer.add(failedResult(item.position, itemErrorOf(error), sink));
  }

  /** Keeps the item for later. Given back, items that run out of budget together would meet again in the next run. */
  async #again(item: items.ClaimedItem): Promise<void> {
    if (this.#leaving) return this.#later([item], 0, false);
    this.#options.held.bytes += item.body.length;
    this.#waiting.unshift(item);
  }

  #slowDown(item: items.ClaimedItem, error: GatewayError, wasSent: boolean): Promise<void> {
    const { retryAfterSeconds } = error.details;
    const delayMs = retryDelayMs(item.attempts, retryAfterSeconds);
    // The limits of the gateway are true of every item; what an upstream says of one may not be.
    const pauseMs = wasSent ? Math.min(delayMs, retryDelayMs(item.attempts, undefined)) : delayMs;
    this.#pace.overloaded(this.pauseMs > 0);
    this.#notBefore = Math.max(this.#notBefore, this.#parts.clock.monotonic() + pauseMs);
    if (this.pauseMs > LONGEST_PAUSE_MS) this.leave();
    else this.#parts.clock.timer(pauseMs, this.#options.changed);
    return this.#later([item], delayMs, wasSent);
  }

  /** @param counts whether this was an attempt */
  async #later(given: readonly items.ClaimedItem[], delayMs: number, counts: boolean): Promise<void> {
    const { database, clock } = this.#parts;
    const back = {
      positions: given.map(({ position }) => position),
      freeAt: new Date(clock.now() + delayMs),
      attempts: counts ? 0 : 1,
    };
    // If that fails, the items are free when the claim ends.
    await items.putBack(database, this.batch.id, this.#claim, back).catch(() => {});
  }

  #giveBack(): void {
    const waiting = this.#waiting.splice(0);
    if (waiting.length === 0) return;
    for (const item of waiting) this.#options.held.bytes -= item.body.length;
    this.#givingBack = Promise.all([this.#givingBack, this.#later(waiting, 0, false)]).then(() => {});
  }
}
