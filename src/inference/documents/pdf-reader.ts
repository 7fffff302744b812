/**
 * Reads the text of PDFs, in a worker thread, one after the other: a hostile file can neither block the process nor use
 * its memory. The thread starts on first use and ends after a minute without use.
 */
import { Worker } from 'node:worker_threads';
import type { Clock, Timer } from '../../base/clock.ts';
import type { PdfFault, PdfNews, PdfOrder } from './pdf-worker.ts';

/** No model reads more pages at once. */
const MAX_PAGES = 2_000;
/** UTF-16 units of all pages. */
const MAX_LENGTH = 4 * 1024 * 1024;
/** The most files that wait. */
const MAX_WAITING = 16;
const MAX_MS = 20_000;
const IDLE_MS = 60_000;
const MAX_HEAP_MB = 512;

/** `busy`: too many files wait; `slow`: it took longer than 20 s, or the thread failed. */
export type PdfFailure = PdfFault | 'busy' | 'slow';
type PdfText = { pages: readonly string[] } | { fault: PdfFailure };

interface Waiting {
  order: PdfOrder;
  resolve: (read: PdfText) => void;
}

export class PdfReader {
  readonly #clock: Clock;
  /** The first one is being read. */
  readonly #queue: Waiting[] = [];
  #worker: Worker | undefined;
  #limit: Timer | undefined;
  #idle: Timer | undefined;
  #nextId = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether the thread runs. */
  get running(): boolean {
    return this.#worker !== undefined;
  }

  /** Never rejects. */
  read(bytes: Uint8Array): Promise<PdfText> {
    if (this.#queue.length >= MAX_WAITING) return Promise.resolve({ fault: 'busy' });
    this.#idle?.cancel();
    this.#nextId += 1;
    // The thread gets a copy: the caller's memory may be a part of a larger buffer.
    const order: PdfOrder = {
      id: this.#nextId,
      bytes: Uint8Array.from(bytes),
      maxPages: MAX_PAGES,
      maxLength: MAX_LENGTH,
    };
    return new Promise((resolve) => {
      this.#queue.push({ order, resolve });
      if (this.#queue.length === 1) this.#next();
    });
  }

  /** Ends the thread. Files that wait are not read. */
  async close(): Promise<void> {
    this.#idle?.cancel();
    const worker = this.#worker;
    this.#worker = undefined;
    this.#limit?.cancel();
    for (const { resolve } of this.#queue.splice(0)) resolve({ fault: 'slow' });
    await worker?.terminate();
  }

  #next(): void {
    const [first] = this.#queue;
    if (first === undefined) {
      this.#idle = this.#clock.timer(IDLE_MS, () => void this.close());
      return;
    }
    this.#worker ??= this.#start();
    this.#limit = this.#clock.timer(MAX_MS, () => this.#failed());
    this.#worker.postMessage(first.order, [first.order.bytes.buffer as ArrayBuffer]);
  }

  /** The file takes too long, or has ended the thread. The others are read by a new one. */
  #failed(): void {
    const worker = this.#worker;
    this.#worker = undefined;
    void worker?.terminate();
    this.#done({ fault: 'slow' });
  }

  #done(read: PdfText): void {
    this.#limit?.cancel();
    this.#queue.shift()?.resolve(read);
    this.#next();
  }

  #start(): Worker {
    const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
    const worker = new Worker(new URL(`./pdf-worker.${extension}`, import.meta.url), {
      name: 'pdf',
      env: {},
      stdout: true,
      stderr: true,
      resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
    });
    worker.on('message', ({ id, pages, fault }: PdfNews) => {
      if (this.#worker !== worker || this.#queue[0]?.order.id !== id) return;
      this.#done(pages === undefined ? { fault: fault ?? 'unreadable' } : { pages });
    });
    worker.on('error', () => {});
    worker.on('exit', () => {
      if (this.#worker === worker) this.#failed();
    });
    // After adding the listeners, because the first `message` listener refs the worker again.
    worker.unref();
    return worker;
  }
}
