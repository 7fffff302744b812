/**
 * Exact counts of tokens, off the main thread (design, promise 2): for requests whose size in bytes does not fit a budget
 * that their tokens may fit. The thread starts when it is first needed and ends when nobody has needed it for a while.
 */
import { Worker } from 'node:worker_threads';
import type { Clock, Timer } from '../../base/clock.ts';
import type { CountNews, CountOrder } from './count-worker.ts';
import type { Encoding } from './family.ts';

/** A longer text is not counted: it would hold up all others. */
const LONGEST_TEXT = 4 * 1024 * 1024;
/** Counts that run or wait; more are not made. */
const MOST_WAITING = 16;
/** From the order to the count, the loading of the tokenizer included. */
const MOST_MS = 4_000;
const IDLE_MS = 60_000;
const MAX_HEAP_MB = 512;

export class TokenCounter {
  readonly #clock: Clock;
  readonly #waiting = new Map<number, (tokens: number | undefined) => void>();
  #worker: Worker | undefined;
  #idle: Timer | undefined;
  #nextId = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether its thread runs. */
  get running(): boolean {
    return this.#worker !== undefined;
  }

  /** Undefined where there is no count: the text is too long, too many others wait, or it took too long. */
  count(encoding: Encoding, text: string): Promise<number | undefined> {
    if (text.length > LONGEST_TEXT || this.#waiting.size >= MOST_WAITING) return Promise.resolve(undefined);
    this.#idle?.cancel();
    this.#nextId += 1;
    const id = this.#nextId;
    return new Promise((resolve) => {
      // Whoever waits behind a count that takes too long has no count either: the thread goes.
      const limit = this.#clock.timer(MOST_MS, () => void this.close());
      this.#waiting.set(id, (tokens) => {
        limit.cancel();
        resolve(tokens);
      });
      this.#worker ??= this.#start();
      this.#worker.postMessage({ id, encoding, text } satisfies CountOrder);
    });
  }

  /** Ends the thread; whoever waits for it gets no count. */
  async close(): Promise<void> {
    this.#idle?.cancel();
    const worker = this.#worker;
    this.#worker = undefined;
    this.#giveUp();
    await worker?.terminate();
  }

  #start(): Worker {
    const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
    const worker = new Worker(new URL(`./count-worker.${extension}`, import.meta.url), {
      name: 'tokens',
      env: {},
      resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
    });
    worker.on('message', ({ id, tokens }: CountNews) => {
      this.#tell(id, tokens);
      if (this.#waiting.size === 0 && this.#worker === worker) {
        this.#idle = this.#clock.timer(IDLE_MS, () => void this.close());
      }
    });
    worker.on('error', () => {});
    worker.on('exit', () => {
      if (this.#worker !== worker) return;
      this.#worker = undefined;
      this.#giveUp();
    });
    // Behind the listeners, since the first one for messages holds the process.
    worker.unref();
    return worker;
  }

  #tell(id: number, tokens: number | undefined): void {
    const tell = this.#waiting.get(id);
    this.#waiting.delete(id);
    tell?.(tokens);
  }

  #giveUp(): void {
    for (const id of [...this.#waiting.keys()]) this.#tell(id, undefined);
  }
}
