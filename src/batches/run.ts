/**
 * Runs the items of one batch: takes them in small groups, sends each through the inference pipeline, and writes one result
 * for each. What this process has taken is marked with its claim until a moment that it moves on while it lives; when it
 * dies, others take the items after that moment.
 */
import type { Caller } from '../access/index.ts';
import { type Clock, Pause, sleep, type Timer } from '../base/clock.ts';
import { GatewayError } from '../base/errors.ts';
import { uuidv7 } from '../base/ids.ts';
import { type InferenceParts, serve } from '../inference/index.ts';
import type { Database } from '../storage/database.ts';
import type { Batch } from './batch.ts';
import { acceptItem } from './item.ts';
import * as items from './items.sql.ts';
import { Pace, retryDelayMs } from './pace.ts';
import { completedResult, failedResult, ItemSink, itemErrorOf } from './result.ts';
import { markSeen } from './store.ts';

export interface RunParts {
  database: Database;
  clock: Clock;
  inference: InferenceParts;
  /** The current caller of a key. Rejects with GatewayError 401 when the key may not be used. */
  callerOfKey(hash: string): Caller | Promise<Caller>;
}

/** How long items stay taken without a sign of life; a killed process is replaced after about 12 s. */
const CLAIM_MS = 10_000;
const RENEW_MS = 2_500;
/** Taken at once: a number of items, and of bytes. */
const CLAIMED_AT_ONCE = 32;
const CLAIMED_BYTES = 4 * 1024 * 1024;
/** Bodies in memory; above it, no further items are taken. */
const HELD_BYTES = 32 * 1024 * 1024;
const PACE = { first: 4, most: 8 };
/** After this time others get a turn: each process works on few batches at once. */
const TURN_MS = 60_000;
/** Through longer ones the place of the batch is given to another. */
const LONGEST_PAUSE_MS = 5_000;
/** Refusals for load after which an item fails. */
const MOST_ATTEMPTS = 30;
/** How long running items may take to end when the process closes. */
const CLOSING_MS = 2_000;
const WRITE_AGAIN_MS = 500;
const TOO_BUSY = new Set([429, 503, 529]);

export class BatchRun {
  readonly #batch: Batch;
  readonly #parts: RunParts;
  readonly #signal: AbortSignal;
  readonly #claim: string;
  readonly #pace = new Pace(PACE);
  readonly #waiting: items.ClaimedItem[] = [];
  readonly #running = new Map<number, ItemSink>();
  #heldBytes = 0;
  /** Monotonic time before which no item begins, after a refusal for load. */
  #notBefore = 0;
  #results: items.ItemResult[] = [];
  #writing: Promise<void> | undefined;
  /** Why results could not be written. */
  #broken: { cause: unknown } | undefined;
  readonly #changed: Pause;

  constructor(batch: Batch, parts: RunParts, signal: AbortSignal) {
    this.#batch = batch;
    this.#parts = parts;
    this.#signal = signal;
    this.#changed = new Pause(parts.clock);
    this.#claim = uuidv7(parts.clock.now());
  }

  /** Resolves when there is nothing to take at the moment, or others shall have their turn. */
  async run(): Promise<void> {
    const { clock } = this.#parts;
    const endsAt = clock.monotonic() + TURN_MS;
    const renewal = this.#renew();
    const wake = () => this.#changed.end();
    this.#signal.addEventListener('abort', wake);
    try {
      while (!this.#signal.aborted && clock.monotonic() < endsAt && this.#broken === undefined) {
        const pauseMs = this.#notBefore - clock.monotonic();
        if (pauseMs <= 0) {
          if (this.#waiting.length === 0 && this.#heldBytes < HELD_BYTES) await this.#take();
          if (this.#waiting.length === 0 && this.#running.size === 0) break;
          this.#begin();
        } else if (this.#running.size === 0 && pauseMs > LONGEST_PAUSE_MS) break;
        await this.#changed.wait(pauseMs > 0 ? Math.min(pauseMs, RENEW_MS) : RENEW_MS);
      }
      await this.#finish();
    } finally {
      renewal.cancel();
      this.#signal.removeEventListener('abort', wake);
    }
  }

  #renew(): Timer {
    const { clock, database } = this.#parts;
    const timer = clock.timer(RENEW_MS, () => {
      timer.refresh();
      // While the database is away nothing can be renewed; then an item may run twice.
      items.renewClaim(database, this.#batch.id, this.#claim, this.#claimEnd()).catch(() => {});
      markSeen(database, this.#batch.id, new Date(clock.now())).catch(() => {});
    });
    return timer;
  }

  #claimEnd(): Date {
    return new Date(this.#parts.clock.now() + CLAIM_MS);
  }

  async #take(): Promise<void> {
    const { database, clock } = this.#parts;
    const taken = await items.claimItems(database, this.#batch.id, {
      claim: this.#claim,
      now: new Date(clock.now()),
      until: this.#claimEnd(),
      count: CLAIMED_AT_ONCE,
      bytes: CLAIMED_BYTES,
    });
    for (const item of taken) this.#heldBytes += item.body.length;
    this.#waiting.push(...taken);
  }

  #begin(): void {
    while (this.#waiting.length > 0 && this.#running.size < this.#pace.limit) {
      void this.#runItem(this.#waiting.shift()!);
    }
  }

  async #runItem(item: items.ClaimedItem): Promise<void> {
    const sink = new ItemSink();
    this.#running.set(item.position, sink);
    try {
      const error = await this.#answer(item, sink);
      if (error === undefined) {
        this.#pace.succeeded();
        this.#write(completedResult(item.position, sink));
      } else await this.#failed(item, sink, error);
    } catch (cause) {
      this.#parts.inference.log.error('an item of a batch failed', { batch: this.#batch.id, cause });
      this.#write(failedResult(item.position, itemErrorOf(new GatewayError('server', 'internal error'))));
    } finally {
      this.#running.delete(item.position);
      this.#heldBytes -= item.body.length;
      this.#changed.end();
    }
  }

  /** Returns the error instead of an answer. */
  async #answer({ body }: items.ClaimedItem, sink: ItemSink): Promise<GatewayError | undefined> {
    const { callerOfKey, inference, clock } = this.#parts;
    try {
      const caller = await callerOfKey(this.#batch.keyHash);
      const request = acceptItem(body, this.#batch, caller, clock.now());
      let failure: GatewayError | undefined;
      const { format } = request;
      const observed = {
        ...format,
        encodeFailure(error: GatewayError, about: Parameters<typeof format.encodeFailure>[1]) {
          failure = error;
          return format.encodeFailure(error, about);
        },
      };
      await serve({ ...request, format: observed }, sink, inference);
      if (failure !== undefined) return failure;
      return sink.status === 200 ? undefined : new GatewayError('server', 'the request was given up');
    } catch (error) {
      if (error instanceof GatewayError) return error;
      throw error;
    }
  }

  async #failed(item: items.ClaimedItem, sink: ItemSink, error: GatewayError): Promise<void> {
    const { clock } = this.#parts;
    // The process closes; another one runs the item again.
    if (this.#signal.aborted || sink.closed) return this.#later(item, 0);
    if (TOO_BUSY.has(error.status) && item.attempts < MOST_ATTEMPTS) {
      const delayMs = retryDelayMs(item.attempts, error.details.retryAfterSeconds);
      const now = clock.monotonic();
      this.#pace.overloaded(this.#notBefore > now);
      this.#notBefore = Math.max(this.#notBefore, now + Math.min(delayMs, retryDelayMs(item.attempts, undefined)));
      return this.#later(item, delayMs);
    }
    if (error.status === 402 && this.#running.size > 1) {
      // The reservations of the others are mostly larger than what they will have cost.
      this.#pace.alone();
      return this.#later(item, 0);
    }
    this.#write(failedResult(item.position, itemErrorOf(error), sink.row));
  }

  async #later({ position }: items.ClaimedItem, delayMs: number): Promise<void> {
    const { database, clock } = this.#parts;
    const freeAt = new Date(clock.now() + delayMs);
    // If that fails, the item is free when the claim ends.
    await items.putBack(database, this.#batch.id, this.#claim, { position, freeAt }).catch(() => {});
  }

  /** Results of a moment are written together. */
  #write(result: items.ItemResult): void {
    this.#results.push(result);
    this.#writing ??= this.#writeAll().then(
      () => {
        this.#writing = undefined;
      },
      (cause: unknown) => {
        this.#broken = { cause };
        this.#changed.end();
      },
    );
  }

  async #writeAll(): Promise<void> {
    const { database, clock } = this.#parts;
    while (this.#results.length > 0) {
      const results = this.#results;
      this.#results = [];
      try {
        await database.transaction((tx) => items.writeResults(tx, this.#batch.id, results));
      } catch (error) {
        // They are paid for: the process keeps them until the database is back. When it closes first, the items run again.
        if (this.#signal.aborted || !(error instanceof GatewayError)) throw error;
        this.#results.unshift(...results);
        await sleep(clock, WRITE_AGAIN_MS);
      }
    }
  }

  /** Nothing new begins. Waits for the running items, and gives back the others. */
  async #finish(): Promise<void> {
    const { database, clock } = this.#parts;
    for (const item of this.#waiting.splice(0)) {
      this.#heldBytes -= item.body.length;
      await this.#later(item, 0);
    }
    const closesAt = () => (this.#signal.aborted ? clock.monotonic() + CLOSING_MS : Number.POSITIVE_INFINITY);
    let deadline = closesAt();
    while (this.#running.size > 0) {
      await this.#changed.wait(Math.min(RENEW_MS, CLOSING_MS));
      if (deadline === Number.POSITIVE_INFINITY) deadline = closesAt();
      if (clock.monotonic() >= deadline) for (const sink of this.#running.values()) sink.close();
    }
    await this.#writing;
    await items.releaseClaim(database, this.#batch.id, this.#claim, new Date(clock.now())).catch(() => {});
    if (this.#broken) throw this.#broken.cause;
  }
}
