/** Where the answer of a background response goes: nobody waits for it, so it is only recorded. */
import type { TextEncoding } from '../../base/byte-text.ts';
import type { GatewayError } from '../../base/errors.ts';
import type { ServedFormat } from '../../formats/conversation/format.ts';
import type { AcceptedRequest, Sink } from '../../inference/index.ts';
import { type Body, textOf } from '../body-text.ts';
import type { Recorder } from '../recorder.ts';

export class BackgroundSink implements Sink {
  /** The error that the request was answered with instead of a response. */
  failure: GatewayError | undefined;
  readonly #recorder: Recorder;
  #leave: (() => void) | undefined;
  #closed = false;

  constructor(recorder: Recorder) {
    this.#recorder = recorder;
  }

  get closed(): boolean {
    return this.#closed;
  }

  reply(status: number, _headers: unknown, body: Body, encoding?: TextEncoding): void {
    if (status === 200) this.#recorder.whole(textOf(body, encoding));
  }

  open(): void {}

  write(text: string): boolean {
    this.#recorder.read(text);
    return true;
  }

  end(): void {}

  onDrain(): void {}

  onClose(run: () => void): void {
    this.#leave = run;
    if (this.#closed) run();
  }

  /** The request with a format that leaves its error here before it is encoded. */
  observed(request: AcceptedRequest<ServedFormat>): AcceptedRequest<ServedFormat> {
    const { format } = request;
    const encodeFailure: ServedFormat['encodeFailure'] = (error, about) => {
      this.failure = error;
      return format.encodeFailure(error, about);
    };
    return { ...request, format: { ...format, encodeFailure } };
  }

  /** Gives the response up, as a client that disconnects. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#leave?.();
  }
}
