/**
 * Records that wait for one receiver in the memory of this process: bounded, handed on in batches, retried at growing
 * intervals. Records that do not fit are dropped and counted.
 */
import type { Allowance } from './allowance.ts';
import type { Clock, Timer } from './clock.ts';

/** Why a delivery did not succeed. */
export interface Problem {
  message: string;
  /** `refused`: the receiver will never accept these records. `cancelled`: the process closes. */
  outcome: 'refused' | 'failed' | 'cancelled';
  retryAfterMs?: number;
}

interface QueueParts<Item> {
  clock: Clock;
  /** Shared by all queues that have it. */
  memory: Allowance;
  /** Of a record in memory, in any unit that the limits share. */
  sizeOf(record: Item): number;
  /** The most that the records of one batch may have together. */
  batchSize: number;
  /** How long records are gathered before they are delivered; default 1 s. */
  gatherMs?: number;
  /** `gone`: the receiver does not get any records now, and the waiting ones are forgotten. */
  deliver(records: readonly Item[]): Promise<Problem | 'gone' | undefined>;
  delivered(): void;
  failed(message: string): void;
  dropped(records: readonly Item[], message: string): void;
}

const GATHER_MS = 1_000;
const MOST_AT_ONCE = 500;
const MOST_RECORDS = 20_000;
const MOST_SIZE = 16 * 1024 * 1024;
const RETRY_MS = 1_000;
const RETRY_MOST_MS = 60_000;

export class DeliveryQueue<Item> {
  readonly #parts: QueueParts<Item>;
  #waiting: Item[] = [];
  #held = 0;
  #timer: Timer | undefined;
  #failures = 0;
  #pauseMs = RETRY_MS;
  #running: Promise<void> | undefined;
  #closed = false;

  constructor(parts: QueueParts<Item>) {
    this.#parts = parts;
  }

  /** Returns at once, never throws. */
  add(record: Item): void {
    const size = this.#parts.sizeOf(record);
    const fits = this.#waiting.length < MOST_RECORDS && this.#held + size <= MOST_SIZE;
    if (this.#closed || !fits || !this.#parts.memory.take(size)) {
      this.#parts.dropped([record], 'the queue is full: the receiver is too slow or does not answer');
      return;
    }
    this.#waiting.push(record);
    this.#held += size;
    // A pause after a failure has its own timer.
    this.#schedule(this.#gatherMs);
  }

  get size(): number {
    return this.#waiting.length;
  }

  /** One attempt at everything that waits, whatever has failed so far. */
  async flush(): Promise<void> {
    this.#cancel();
    await this.#running;
    await this.#run();
  }

  /** Takes no more records, and gives up what waits. */
  close(): void {
    this.#closed = true;
    this.#cancel();
    this.#forget();
  }

  get #gatherMs(): number {
    return this.#parts.gatherMs ?? GATHER_MS;
  }

  #schedule(delayMs: number): void {
    if (this.#closed || this.#running !== undefined) return;
    this.#timer ??= this.#parts.clock.timer(delayMs, () => {
      this.#timer = undefined;
      void this.#run();
    });
  }

  #cancel(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #run(): Promise<void> {
    this.#running ??= this.#deliverAll().finally(() => {
      this.#running = undefined;
      if (this.#waiting.length > 0) this.#schedule(this.#failures === 0 ? this.#gatherMs : this.#pauseMs);
    });
    return this.#running;
  }

  async #deliverAll(): Promise<void> {
    while (this.#waiting.length > 0 && !this.#closed) {
      const batch = this.#batch();
      const problem = await this.#parts.deliver(batch).catch(asProblem);
      if (problem === 'gone') return this.#forget();
      if (problem === undefined) {
        this.#failures = 0;
        this.#parts.delivered();
      } else if (problem.outcome === 'refused') this.#parts.dropped(batch, problem.message);
      else return this.#failed(problem);
      this.#remove(batch);
    }
  }

  #failed({ message, outcome, retryAfterMs = 0 }: Problem): void {
    if (outcome === 'cancelled') return;
    this.#pauseMs = Math.max(retryAfterMs, Math.min(RETRY_MS * 2 ** this.#failures, RETRY_MOST_MS));
    this.#failures += 1;
    this.#parts.failed(message);
  }

  #batch(): Item[] {
    let size = 0;
    let count = 0;
    for (const record of this.#waiting) {
      size += this.#parts.sizeOf(record);
      if (count > 0 && (count === MOST_AT_ONCE || size > this.#parts.batchSize)) break;
      count += 1;
    }
    return this.#waiting.slice(0, count);
  }

  /** Those at the front. */
  #remove(batch: readonly Item[]): void {
    if (this.#closed) return;
    this.#waiting = this.#waiting.slice(batch.length);
    const size = batch.reduce((sum, record) => sum + this.#parts.sizeOf(record), 0);
    this.#held -= size;
    this.#parts.memory.release(size);
  }

  #forget(): void {
    this.#parts.memory.release(this.#held);
    this.#held = 0;
    this.#waiting = [];
  }
}

/** A thrown error counts as temporary: settings that cannot be read, or records that cannot be stored. */
function asProblem(error: unknown): Problem {
  return { message: error instanceof Error ? error.message : String(error), outcome: 'failed' };
}
