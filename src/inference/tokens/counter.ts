/**
 * Counts tokens exactly, in a worker thread: for requests whose byte bound does not fit a budget that their token count
 * may fit. The thread starts on first use and ends after a minute without use.
 */
import { Worker } from 'node:worker_threads';
import type { Clock, Timer } from '../../base/clock.ts';
import type { CountNews, CountOrder, LoadedNews } from './count-worker.ts';
import type { Encoding } from './family.ts';

/** Longer texts are not counted, since they would delay all others. */
const MAX_TEXT_LENGTH = 4 * 1024 * 1024;
/** The most counts that run or wait. */
const MAX_WAITING = 16;
/** Timeout from the order to the count, or from the end of the tokenizer's loading. */
const MAX_MS = 4_000;
/** Timeout for the thread's start and the loading, which happen once and may be slow on a small machine. */
const MAX_LOADING_MS = 30_000;
const IDLE_MS = 60_000;
const MAX_HEAP_MB = 512;

interface Waiting {
  encoding: Encoding;
  limit: Timer;
  resolve: (tokens: number | undefined) => void;
}

export class TokenCounter {
  readonly #clock: Clock;
  readonly #waiting = new Map<number, Waiting>();
  /** The tokenizers that the thread has loaded. */
  readonly #loaded = new Set<Encoding>();
  #worker: Worker | undefined;
  #idle: Timer | undefined;
  #nextId = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether the thread runs. */
  get running(): boolean {
    return this.#worker !== undefined;
  }

  /** Undefined without a count: the text is too long, too many counts wait, or it took too long. */
  count(encoding: Encoding, text: string): Promise<number | undefined> {
    if (text.length > MAX_TEXT_LENGTH || this.#waiting.size >= MAX_WAITING) return Promise.resolve(undefined);
    this.#idle?.cancel();
    this.#nextId += 1;
    const id = this.#nextId;
    return new Promise((resolve) => {
      const limit = this.#limit(this.#loaded.has(encoding) ? MAX_MS : MAX_LOADING_MS);
      this.#waiting.set(id, { encoding, limit, resolve });
      this.#worker ??= this.#start();
      this.#worker.postMessage({ id, encoding, text } satisfies CountOrder);
    });
  }

  /** Ends the thread. Waiting counts resolve to undefined. */
  async close(): Promise<void> {
    this.#idle?.cancel();
    const worker = this.#worker;
    this.#ended();
    await worker?.terminate();
  }

  /** A count that takes too long ends the thread, and with it every count that waits. */
  #limit(delayMs: number): Timer {
    return this.#clock.timer(delayMs, () => void this.close());
  }

  #start(): Worker {
    const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
    const worker = new Worker(new URL(`./count-worker.${extension}`, import.meta.url), {
      name: 'tokens',
      env: {},
      resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
    });
    worker.on('message', (news: CountNews | LoadedNews) => {
      if (this.#worker !== worker) return;
      if ('loaded' in news) {
        this.#hasLoaded(news.loaded);
        return;
      }
      this.#resolve(news.id, news.tokens);
      if (this.#waiting.size === 0) this.#idle = this.#clock.timer(IDLE_MS, () => void this.close());
    });
    worker.on('error', () => {});
    worker.on('exit', () => {
      if (this.#worker === worker) this.#ended();
    });
    // After adding the listeners, because the first `message` listener refs the worker again.
    worker.unref();
    return worker;
  }

  #hasLoaded(encoding: Encoding): void {
    this.#loaded.add(encoding);
    for (const waiting of this.#waiting.values()) {
      if (waiting.encoding !== encoding) continue;
      waiting.limit.cancel();
      waiting.limit = this.#limit(MAX_MS);
    }
  }

  #resolve(id: number, tokens: number | undefined): void {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    waiting?.limit.cancel();
    waiting?.resolve(tokens);
  }

  #ended(): void {
    this.#worker = undefined;
    this.#loaded.clear();
    for (const id of [...this.#waiting.keys()]) this.#resolve(id, undefined);
  }
}
