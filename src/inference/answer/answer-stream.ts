/**
 * The client's side of a streamed answer. The first text opens it, listeners receive every write, and comments keep the
 * connection alive while the upstream is silent.
 */
import type { TextEncoding } from '../../base/byte-text.ts';
import type { Timer } from '../../base/clock.ts';
import type { Stamp } from '../../formats/conversation/format.ts';
import type { RequestContext } from '../context.ts';
import type { InferenceParts } from '../parts.ts';
import { headersOf } from './response-headers.ts';

export class AnswerStream {
  /** True once the response head is sent: from then on errors are sent in-band. */
  opened = false;
  /** True once anything of the answer is sent; keep-alive comments are not. */
  begun = false;
  /** Of an answer that is bytes; undefined for event streams. */
  mediaType: string | undefined;
  readonly #context: RequestContext;
  readonly #parts: InferenceParts;
  #keepAlive: Timer | undefined;

  constructor(context: RequestContext, parts: InferenceParts) {
    this.#context = context;
    this.#parts = parts;
  }

  /** Starts sending a comment after each silent interval (`limits.keepAliveCommentMs`). */
  keepAlive(): void {
    this.quiet();
    const { clock, limits, keepAliveComment } = this.#parts;
    const timer = clock.timer(limits.keepAliveCommentMs, () => {
      this.#open();
      this.#context.sink.write(keepAliveComment);
      timer.refresh();
    });
    this.#keepAlive = timer;
  }

  /** Stops the keep-alive comments. */
  quiet(): void {
    this.#keepAlive?.cancel();
    this.#keepAlive = undefined;
  }

  /** @param stamp for debug events; returns false when the client reads too slowly */
  write(text: string, stamp: Stamp, encoding: TextEncoding): boolean {
    if (text === '') return true;
    const { sink, debug, listeners } = this.#context;
    if (listeners !== undefined) for (const listener of listeners) listener.wrote?.(text);
    if (sink.closed) return true;
    this.begin();
    this.#keepAlive?.refresh();
    return sink.write(debug === undefined ? text : debug.take(stamp) + text, encoding);
  }

  /** Ends a whole answer: its output, the debug event for the upstream's end, then the closing text. */
  complete(output: string, closing: string, stamp: Stamp, encoding: TextEncoding, endedAt: number): void {
    this.write(output, stamp, encoding);
    this.#context.debug?.record('upstream_body_ended', endedAt);
    this.end(closing, stamp, encoding);
  }

  end(text: string, stamp: Stamp, encoding: TextEncoding): void {
    this.write(text, stamp, encoding);
    if (!this.#context.sink.closed) this.#context.sink.end();
  }

  /** Ends a stream with an error. Bytes have no event for one, so the client sees that they break off. */
  breakOff(text: string, stamp: Stamp, encoding: TextEncoding): void {
    if (this.mediaType === undefined) {
      this.end(text, stamp, encoding);
      return;
    }
    this.write(text, stamp, encoding);
    if (!this.#context.sink.closed) this.#context.sink.cut!();
  }

  /** The answer begins: sends the response head, unless keep-alive comments needed it. */
  begin(): void {
    this.begun = true;
    this.#open();
  }

  #open(): void {
    if (this.opened) return;
    this.opened = true;
    const { mediaType } = this;
    const headers = headersOf(this.#context);
    this.#context.sink.open(mediaType === undefined ? headers : { ...headers, 'content-type': mediaType });
  }
}
