/** Keeps an answer while it is given, and hands it to the cache once it is known to be whole. */
import type { CachedAnswer, ResponseCache } from '../../cache/index.ts';
import type { WholeBody } from '../../formats/single/index.ts';
import type { AnswerListener, Ended } from '../listener.ts';

export class AnswerGatherer implements AnswerListener {
  readonly #cache: ResponseCache;
  readonly #key: Buffer;
  readonly #ttlMs: number;
  readonly #now: () => number;
  #pieces: (string | Buffer)[] | undefined = [];
  /** UTF-16 units or bytes: never more than the bytes. */
  #size = 0;

  constructor(cache: ResponseCache, key: Buffer, ttlMs: number, now: () => number) {
    this.#cache = cache;
    this.#key = key;
    this.#ttlMs = ttlMs;
    this.#now = now;
  }

  wrote(piece: WholeBody): void {
    if (this.#pieces === undefined) return;
    for (const part of typeof piece === 'string' || Buffer.isBuffer(piece) ? [piece] : piece) {
      if (this.#size + part.length > this.#cache.answerBytes || !this.#cache.room.take(part.length)) {
        this.#release();
        return;
      }
      this.#size += part.length;
      this.#pieces.push(part);
    }
  }

  /** Only what ended well is an answer: no error, none that was cut or left. */
  ended({ row }: Ended): void {
    const pieces = this.#pieces;
    this.#release();
    if (pieces === undefined || row.status !== 200 || row.error !== null || row.cancelled) return;
    const createdAt = this.#now();
    const answer: CachedAnswer = {
      key: this.#key,
      sourceId: row.id,
      createdAt,
      expiresAt: createdAt + this.#ttlMs,
      model: row.model,
      endpointId: row.endpointId,
      providerName: row.providerName,
      finishReason: row.finishReason,
      nativeFinishReason: row.nativeFinishReason,
      body: bytesOf(pieces),
    };
    this.#cache.keep(answer);
  }

  #release(): void {
    this.#pieces = undefined;
    this.#cache.room.give(this.#size);
    this.#size = 0;
  }
}

function bytesOf(pieces: readonly (string | Buffer)[]): Buffer {
  const buffers: Buffer[] = [];
  let text = '';
  for (const piece of pieces) {
    if (typeof piece === 'string') text += piece;
    else {
      if (text !== '') buffers.push(Buffer.from(text));
      text = '';
      buffers.push(piece);
    }
  }
  if (text !== '') buffers.push(Buffer.from(text));
  return buffers.length === 1 ? buffers[0]! : Buffer.concat(buffers);
}
