/** Owns the embedding thread: starts it on first use, limits its queue, and fails the waiting jobs if it dies. */
import { createRequire } from 'node:module';
import { Worker } from 'node:worker_threads';
import { EMBEDDING_PACKAGE, type EmbedderNews, type EmbedderOrder, MODEL_PACKAGE } from './embedder.ts';

/** Most jobs waiting or running; further ones are rejected. */
const MAX_JOBS = 64;
/** Heap limit of the thread; the weights are outside the heap. */
const MAX_HEAP_MB = 1024;

export type Embedded =
  | { vectors: Float32Array; tokens: number }
  | { problem: string; kind: 'busy' | 'too_long' | 'broken' };

/** Whether both optional packages are installed. */
export function isInstalled(): boolean {
  const require = createRequire(import.meta.url);
  try {
    require.resolve(EMBEDDING_PACKAGE);
    require.resolve(MODEL_PACKAGE);
    return true;
  } catch {
    return false;
  }
}

export class EmbeddingThread {
  readonly #waiting = new Map<number, (result: Embedded) => void>();
  #worker: Worker | undefined;
  #nextId = 0;

  /** Calls `done` once, asynchronously, unless the returned function cancels the job first. */
  embed(texts: readonly string[], done: (result: Embedded) => void): () => void {
    if (this.#waiting.size >= MAX_JOBS) {
      return later(done, { problem: 'too many texts are waiting for the local model', kind: 'busy' });
    }
    if (!isInstalled()) {
      const problem = `the optional packages ${EMBEDDING_PACKAGE} and ${MODEL_PACKAGE} are not installed`;
      return later(done, { problem, kind: 'broken' });
    }
    this.#nextId += 1;
    const id = this.#nextId;
    this.#waiting.set(id, done);
    this.#order({ job: { id, texts } });
    return () => {
      if (this.#waiting.delete(id)) this.#order({ cancel: id });
    };
  }

  /** Ends the thread; waiting jobs fail. */
  async close(): Promise<void> {
    await this.#worker?.terminate();
  }

  #order(order: EmbedderOrder): void {
    this.#worker ??= this.#start();
    this.#worker.postMessage(order);
  }

  #start(): Worker {
    const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
    const worker = new Worker(new URL(`./embedder.${extension}`, import.meta.url), {
      name: 'embedder',
      env: {},
      resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
    });
    let problem = 'the thread of the local model ended';
    worker.on('message', (news: EmbedderNews) => this.#tell(news));
    worker.on('error', (error) => {
      problem = `the local model failed: ${error instanceof Error ? error.message : String(error)}`;
    });
    worker.on('exit', () => {
      if (this.#worker === worker) this.#worker = undefined;
      const waiting = [...this.#waiting.values()];
      this.#waiting.clear();
      for (const done of waiting) done({ problem, kind: 'broken' });
    });
    // Lets the gateway exit while the thread is idle. Must follow the listeners, because the first message listener
    // keeps the process alive.
    worker.unref();
    return worker;
  }

  #tell(news: EmbedderNews): void {
    const done = this.#waiting.get(news.id);
    if (done === undefined) return;
    this.#waiting.delete(news.id);
    if ('vectors' in news) done({ vectors: news.vectors, tokens: news.tokens });
    else done({ problem: news.problem, kind: news.tooLong ? 'too_long' : 'broken' });
  }
}

function later(done: (result: Embedded) => void, result: Embedded): () => void {
  let wanted = true;
  queueMicrotask(() => {
    if (wanted) done(result);
  });
  return () => {
    wanted = false;
  };
}
