/**
 * A worker thread that handles one order after the other: a hostile document can neither block the process nor use its
 * memory. The thread starts on first use and ends after a minute without use.
 */
import { Worker } from 'node:worker_threads';
import type { Clock, Timer } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { NotLoaded } from './order.ts';

const IDLE_MS = 60_000;

interface Limits {
  /** The most orders that wait. */
  waiting: number;
  /** For one order; the first includes the start of the thread. */
  timeMs: number;
  heapMb: number;
}

/** `busy`: too many orders wait; `slow`: it took too long, or the thread failed; `unavailable`: the parser cannot be loaded. */
export type Undone = 'busy' | 'slow' | 'unavailable';

export interface ThreadParts {
  clock: Clock;
  log: Log;
}

interface Waiting<Order, News> {
  id: number;
  order: Order;
  resolve: (news: News | Undone) => void;
}

/** Orders are sent as `{ ...order, id }`; the thread answers each with the same `id`. */
export class OneByOne<Order extends object, News extends { id: number }> {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #script: URL;
  readonly #limits: Limits;
  /** The first one is being done. */
  readonly #queue: Waiting<Order, News>[] = [];
  #worker: Worker | undefined;
  #limit: Timer | undefined;
  #idle: Timer | undefined;
  #nextId = 0;
  #isReported = false;

  constructor({ clock, log }: ThreadParts, script: URL, limits: Limits) {
    this.#clock = clock;
    this.#log = log;
    this.#script = script;
    this.#limits = limits;
  }

  /** Whether the thread runs. */
  get running(): boolean {
    return this.#worker !== undefined;
  }

  /** Never rejects. */
  do(order: Order): Promise<News | Undone> {
    if (this.#queue.length >= this.#limits.waiting) return Promise.resolve('busy');
    this.#idle?.cancel();
    const id = ++this.#nextId;
    return new Promise((resolve) => {
      this.#queue.push({ id, order, resolve });
      if (this.#queue.length === 1) this.#next();
    });
  }

  /** Ends the thread. Orders that wait are not done. */
  async close(): Promise<void> {
    this.#idle?.cancel();
    this.#limit?.cancel();
    const worker = this.#worker;
    this.#worker = undefined;
    for (const { resolve } of this.#queue.splice(0)) resolve('slow');
    await worker?.terminate();
  }

  #next(): void {
    const [first] = this.#queue;
    if (first === undefined) {
      this.#idle = this.#clock.timer(IDLE_MS, () => void this.close());
      return;
    }
    this.#worker ??= this.#start();
    this.#limit = this.#clock.timer(this.#limits.timeMs, () => this.#failed());
    this.#worker.postMessage({ ...first.order, id: first.id });
  }

  /** The order takes too long, or has ended the thread. The others are done by a new one. */
  #failed(): void {
    const worker = this.#worker;
    this.#worker = undefined;
    void worker?.terminate();
    this.#done('slow');
  }

  #done(news: News | Undone): void {
    this.#limit?.cancel();
    this.#queue.shift()?.resolve(news);
    this.#next();
  }

  #unavailable(cause: Error): Undone {
    // Every document would tell the same.
    if (!this.#isReported) this.#log.error('a parser of documents cannot be loaded', { cause });
    this.#isReported = true;
    return 'unavailable';
  }

  #start(): Worker {
    const worker = new Worker(this.#script, {
      env: {},
      stdout: true,
      stderr: true,
      resourceLimits: { maxOldGenerationSizeMb: this.#limits.heapMb },
    });
    worker.on('message', (news: News | NotLoaded) => {
      if (this.#worker !== worker || this.#queue[0]?.id !== news.id) return;
      this.#done('notLoaded' in news ? this.#unavailable(news.notLoaded) : news);
    });
    worker.on('error', () => {});
    worker.on('exit', () => {
      if (this.#worker !== worker) return;
      if (this.#queue.length > 0) this.#failed();
      else this.#worker = undefined;
    });
    // After adding the listeners, because the first `message` listener refs the worker again.
    worker.unref();
    return worker;
  }
}
