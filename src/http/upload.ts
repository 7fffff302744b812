/** A body that the handler reads as a stream, with back-pressure down to the client's socket. */
import { GatewayError } from '../base/errors.ts';
import { checkUploadHeaders, slowBody, tooLarge } from './body.ts';
import type { Core, HasTimeout } from './core.ts';
import type { GatewayRequest } from './message.ts';
import type { UploadRule } from './operation.ts';

/** Bytes buffered for the handler before the client's socket is paused. */
const HIGH_WATER_BYTES = 256 * 1024;

type UploadCore = Pick<Core<never>, 'receiving' | 'clock' | 'limits'>;

export class Upload implements AsyncIterable<Buffer>, HasTimeout {
  readonly #request: GatewayRequest;
  readonly #core: UploadCore;
  readonly #maxBytes: number;
  readonly #refuse: (error: GatewayError) => void;
  readonly #slot: number;
  readonly #chunks: Buffer[] = [];
  #waitingBytes = 0;
  #bytes = 0;
  #receivedAt: number;
  #paused = false;
  #ended = false;
  #error: Error | undefined;
  #wake: (() => void) | undefined;

  /**
   * @param refuse sends an error: the client sent too much, or nothing for too long
   * @throws GatewayError 415 or 413 for what the headers announce
   */
  constructor(request: GatewayRequest, core: UploadCore, rule: UploadRule, refuse: (error: GatewayError) => void) {
    checkUploadHeaders(request.headers, rule);
    this.#request = request;
    this.#core = core;
    this.#maxBytes = rule.maxBytes;
    this.#refuse = refuse;
    this.#receivedAt = core.clock.monotonic();
    this.#slot = core.receiving.add(this);
  }

  /** True while more of the body is expected. */
  get open(): boolean {
    return !this.#ended && this.#error === undefined;
  }

  receive(chunk: Buffer): boolean {
    this.#bytes += chunk.length;
    this.#receivedAt = this.#core.clock.monotonic();
    if (this.#bytes > this.#maxBytes) {
      this.#refuse(tooLarge(this.#maxBytes));
      return true;
    }
    this.#chunks.push(chunk);
    this.#waitingBytes += chunk.length;
    this.#paused = this.#waitingBytes >= HIGH_WATER_BYTES;
    this.#notify();
    return !this.#paused;
  }

  received(): void {
    this.#ended = true;
    this.#core.receiving.delete(this, this.#slot);
    this.#notify();
  }

  checkTimeout(nowMs: number): void {
    // While the handler is slower than the client, the client's timeout is suspended.
    if (this.#paused) this.#receivedAt = nowMs;
    if (nowMs - this.#receivedAt > this.#core.limits.bodyMs) this.#refuse(slowBody());
  }

  /** Makes the handler's next read reject with `error`. No effect on a body that was read completely. */
  stop(error: Error): void {
    this.#core.receiving.delete(this, this.#slot);
    this.#error ??= error;
    this.#chunks.length = 0;
    if (this.#paused) this.#flow();
    this.#notify();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer, void, undefined> {
    for (;;) {
      if (this.#error) throw this.#error;
      const chunk = this.#chunks.shift();
      if (chunk !== undefined) {
        this.#waitingBytes -= chunk.length;
        if (this.#paused && this.#waitingBytes < HIGH_WATER_BYTES / 2) this.#flow();
        yield chunk;
      } else if (this.#ended) {
        return;
      } else {
        const { promise, resolve } = Promise.withResolvers<void>();
        this.#wake = resolve;
        await promise;
      }
    }
  }

  #flow(): void {
    this.#paused = false;
    this.#receivedAt = this.#core.clock.monotonic();
    this.#request.more();
  }

  #notify(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }
}

/** The error for a handler that still reads after its client has disconnected. */
export function clientDisconnected(): GatewayError {
  return new GatewayError('invalid_request', 'the client disconnected before its body was complete');
}
