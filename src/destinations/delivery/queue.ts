/**
 * Records that wait for one destination in the memory of this process: bounded, handed on in batches, retried more and
 * more rarely. What does not fit is dropped and counted.
 */
import type { Allowance } from '../../base/allowance.ts';
import type { Clock, Timer } from '../../base/clock.ts';
import { type GenerationRecord, sizeOf } from '../record.ts';
import type { Problem } from './send.ts';

interface QueueParts {
  clock: Clock;
  /** Of all queues of the process. */
  memory: Allowance;
  /** The most UTF-16 units of one batch. */
  batchUnits: number;
  /** `gone`: the destination does not get any records now, and the waiting ones are forgotten. */
  deliver(records: readonly GenerationRecord[]): Promise<Problem | 'gone' | undefined>;
  delivered(count: number): void;
  failed(message: string): void;
  dropped(count: number, message: string): void;
}

const GATHER_MS = 1_000;
const MOST_AT_ONCE = 500;
const MOST_RECORDS = 20_000;
const MOST_UNITS = 16 * 1024 * 1024;
const RETRY_MS = 1_000;
const RETRY_MOST_MS = 60_000;

export class DestinationQueue {
  readonly #parts: QueueParts;
  #waiting: GenerationRecord[] = [];
  #units = 0;
  #timer: Timer | undefined;
  #failures = 0;
  #pauseMs = RETRY_MS;
  #running: Promise<void> | undefined;
  #closed = false;

  constructor(parts: QueueParts) {
    this.#parts = parts;
  }

  /** Returns at once, never throws. */
  add(record: GenerationRecord): void {
    const size = sizeOf(record);
    const fits = this.#waiting.length < MOST_RECORDS && this.#units + size <= MOST_UNITS;
    if (this.#closed || !fits || !this.#parts.memory.take(size)) {
      this.#parts.dropped(1, 'the queue is full: the destination is too slow or does not answer');
      return;
    }
    this.#waiting.push(record);
    this.#units += size;
    this.#schedule(this.#waiting.length >= MOST_AT_ONCE && this.#failures === 0 ? 0 : GATHER_MS);
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
      if (this.#waiting.length > 0) this.#schedule(this.#failures === 0 ? GATHER_MS : this.#pauseMs);
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
        this.#parts.delivered(batch.length);
      } else if (problem.outcome === 'refused') this.#parts.dropped(batch.length, problem.message);
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

  #batch(): GenerationRecord[] {
    let units = 0;
    let count = 0;
    for (const record of this.#waiting) {
      units += sizeOf(record);
      if (count > 0 && (count === MOST_AT_ONCE || units > this.#parts.batchUnits)) break;
      count += 1;
    }
    return this.#waiting.slice(0, count);
  }

  /** Those at the front. */
  #remove(batch: readonly GenerationRecord[]): void {
    if (this.#closed) return;
    this.#waiting = this.#waiting.slice(batch.length);
    const units = batch.reduce((sum, record) => sum + sizeOf(record), 0);
    this.#units -= units;
    this.#parts.memory.release(units);
  }

  #forget(): void {
    this.#parts.memory.release(this.#units);
    this.#units = 0;
    this.#waiting = [];
  }
}

/** The settings of the destination cannot be read, or the records cannot be stored: both pass. */
function asProblem(error: unknown): Problem {
  return { message: error instanceof Error ? error.message : String(error), outcome: 'failed' };
}
