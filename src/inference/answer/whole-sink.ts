import type { TextEncoding } from '../../base/byte-text.ts';
import type { GatewayError } from '../../base/errors.ts';
import type { Cost } from '../../formats/conversation/format.ts';
import type { WholeBody } from '../../formats/direct/index.ts';
import type { Generation } from '../../spend/index.ts';
import type { Metered } from '../accounting/meter.ts';
import type { AcceptedRequest, AnyFormat } from '../request.ts';
import type { Sink } from './sink.ts';

/** Receives the answer to a request that is not streamed and has no connection: of a batch, or of a tool. */
export class WholeSink implements Sink {
  status = 0;
  body: Buffer | undefined;
  /** Of the body, if it is not JSON. */
  mediaType: string | undefined;
  row: Generation | undefined;
  cost: Cost | undefined;
  /** The error that the request was answered with. */
  failure: GatewayError | undefined;
  readonly #onEntered: Sink['entered'];
  #leave: (() => void) | undefined;
  #closed = false;

  /** @param onEntered called with the row of the request */
  constructor(onEntered?: Sink['entered']) {
    this.#onEntered = onEntered;
  }

  get closed(): boolean {
    return this.#closed;
  }

  reply(status: number, headers: Record<string, string>, body: WholeBody, encoding: TextEncoding = 'utf8'): void {
    this.status = status;
    this.mediaType = headers['content-type'];
    this.body =
      typeof body === 'string'
        ? Buffer.from(body, encoding)
        : Buffer.isBuffer(body)
          ? body
          : Buffer.concat(body as readonly Buffer[]);
  }

  open(): void {
    throw new Error('a request that is not streamed was answered as a stream');
  }

  write(): boolean {
    throw new Error('a request that is not streamed was answered as a stream');
  }

  end(): void {}

  onDrain(): void {}

  onClose(run: () => void): void {
    this.#leave = run;
    // It was given up before anything listened.
    if (this.#closed) run();
  }

  entered(row: Generation, metered?: Metered): void {
    this.row = row;
    this.cost = metered?.cost;
    this.#onEntered?.(row, metered);
  }

  /** The request with a format that leaves its error here before it is encoded. */
  observed(request: AcceptedRequest): AcceptedRequest {
    const { format } = request;
    const encodeFailure: AnyFormat['encodeFailure'] = (error, about) => {
      this.failure = error;
      return format.encodeFailure(error, about);
    };
    return { ...request, format: { ...format, encodeFailure } };
  }

  /** Gives the request up, as a client that disconnects. */
  close(): void {
    this.#closed = true;
    this.#leave?.();
  }
}
