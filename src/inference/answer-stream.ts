/**
 * The client's side of an answer that goes out piece by piece: opened by its first text, told to whoever listens, kept alive
 * by comments while nothing comes (promise 3).
 */
import type { Timer } from '../base/clock.ts';
import type { Stamp } from '../formats/conversation/format.ts';
import { headersOf } from './answer-headers.ts';
import type { InferenceParts } from './parts.ts';
import type { AcceptedRequest } from './request.ts';

export class AnswerStream {
  /** Its head is out: from now on errors are in-band. */
  opened = false;
  readonly #request: AcceptedRequest;
  readonly #parts: InferenceParts;
  #keepAlive: Timer | undefined;

  constructor(request: AcceptedRequest, parts: InferenceParts) {
    this.#request = request;
    this.#parts = parts;
  }

  /** From now on a silent while (ten seconds) brings a comment. */
  keepAlive(): void {
    const { clock, limits, keepAliveComment } = this.#parts;
    const timer = clock.timer(limits.keepAliveCommentMs, () => {
      this.#open();
      this.#request.sink.write(keepAliveComment);
      timer.refresh();
    });
    this.#keepAlive = timer;
  }

  /** Nothing is sent any more unless it is written. */
  quiet(): void {
    this.#keepAlive?.cancel();
    this.#keepAlive = undefined;
  }

  /** @param stamp for what a debugging client is told; false when the reader is slow */
  write(text: string, stamp: Stamp): boolean {
    if (text === '') return true;
    const { sink, debug, listeners } = this.#request;
    if (listeners !== undefined) for (const listener of listeners) listener.wrote?.(text);
    if (sink.closed) return true;
    this.#open();
    this.#keepAlive?.refresh();
    return sink.write(debug === undefined ? text : debug.take(stamp) + text);
  }

  /** The end of a whole answer: what it shows, that its upstream has ended (for a debugging client), and the rest. */
  complete(shown: string, rest: string, stamp: Stamp, endedAt: number): void {
    this.write(shown, stamp);
    this.#request.debug?.happened('upstream_body_ended', endedAt);
    this.end(rest, stamp);
  }

  end(text: string, stamp: Stamp): void {
    this.write(text, stamp);
    if (!this.#request.sink.closed) this.#request.sink.end();
  }

  #open(): void {
    if (this.opened) return;
    this.opened = true;
    this.#request.sink.open(headersOf(this.#request));
  }
}
