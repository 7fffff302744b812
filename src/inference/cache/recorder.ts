/** Records an answer while it is sent, and stores it in the cache if it ends well. */
import type { CachedAnswer, ResponseCache } from '../../cache/index.ts';
import type { WholeBody } from '../../formats/direct/index.ts';
import type { Generation } from '../../spend/index.ts';
import type { AnswerListener, Ended } from '../answer/listener.ts';

interface CacheRecorderSetup {
  key: Buffer;
  ttlMs: number;
  /** The client set the output limit itself. */
  capped: boolean;
  /** Wall time in ms. */
  now(): number;
}

export class CacheRecorder implements AnswerListener {
  readonly #cache: ResponseCache;
  readonly #key: Buffer;
  readonly #ttlMs: number;
  /** The client set the output limit itself. */
  readonly #capped: boolean;
  readonly #now: () => number;
  #pieces: (string | Buffer)[] | undefined = [];
  /** UTF-16 units of strings plus bytes of buffers, so never more than the bytes. */
  #size = 0;

  constructor(cache: ResponseCache, { key, ttlMs, capped, now }: CacheRecorderSetup) {
    this.#cache = cache;
    this.#key = key;
    this.#ttlMs = ttlMs;
    this.#capped = capped;
    this.#now = now;
  }

  wrote(piece: WholeBody): void {
    if (this.#pieces === undefined) return;
    for (const part of typeof piece === 'string' || Buffer.isBuffer(piece) ? [piece] : piece) {
      if (this.#size + part.length > this.#cache.answerBytes || !this.#cache.memory.take(part.length)) {
        this.#release();
        return;
      }
      this.#size += part.length;
      this.#pieces.push(part);
    }
  }

  ended({ row }: Ended): void {
    const pieces = this.#pieces;
    this.#release();
    if (pieces === undefined || !endedWell(row, this.#capped)) return;
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
    this.#cache.memory.release(this.#size);
    this.#size = 0;
  }
}

/**
 * True for an answer without an error (the provider's included) that was neither cut nor cancelled. An answer that
 * ended at an output limit which the client did not set is not cached: the remaining budget may have set that limit.
 */
function endedWell(row: Generation, capped: boolean): boolean {
  if (row.status !== 200 || row.error !== null || row.cancelled || row.finishReason === 'error') return false;
  return capped || row.finishReason !== 'length';
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
