/** The pipeline's sink over an HTTP exchange: batched text, back-pressure, and the client's disconnect. */
import type { TextEncoding } from '../../base/byte-text.ts';
import type { WholeBody } from '../../formats/direct/index.ts';
import type { Exchange } from '../../http/operation.ts';
import type { Generation } from '../../spend/index.ts';
import type { Sink } from '../answer/sink.ts';

const STREAM_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache',
  // Reverse proxies would buffer events otherwise.
  'x-accel-buffering': 'no',
};

export class HttpSink implements Sink {
  readonly takesBytes = true;
  readonly #exchange: Exchange<unknown>;
  readonly #response: Exchange['response'];

  readonly #idHeader: string | undefined;

  /** @param idHeader header that repeats the generation's id, for clients that look for a request id there */
  constructor(exchange: Exchange<unknown>, idHeader?: string) {
    this.#idHeader = idHeader;
    this.#exchange = exchange;
    this.#response = exchange.response;
  }

  get closed(): boolean {
    return this.#exchange.closed;
  }

  reply(status: number, headers: Record<string, string>, body: WholeBody, encoding: TextEncoding = 'utf8'): void {
    if (this.closed) return;
    const pieces = Array.isArray(body) ? (body as readonly Buffer[]) : [body as string | Buffer];
    let length = 0;
    for (const piece of pieces) length += encoding === 'latin1' ? piece.length : Buffer.byteLength(piece);
    this.#response.writeHead(status, {
      'content-type': 'application/json; charset=utf-8',
      ...this.#withId(headers),
      'content-length': length,
    });
    const last = pieces.length - 1;
    for (let index = 0; index < last; index += 1) this.#response.write(pieces[index]);
    this.#response.end(pieces[last], encoding);
  }

  open(headers: Record<string, string>): void {
    // The head is sent with the first text, in one packet.
    this.#response.writeHead(200, { ...STREAM_HEADERS, ...this.#withId(headers) });
  }

  #withId(headers: Record<string, string>): Record<string, string> {
    const id = headers['x-generation-id'];
    return this.#idHeader === undefined || id === undefined ? headers : { ...headers, [this.#idHeader]: id };
  }

  write(text: string, encoding?: TextEncoding): boolean {
    return this.#response.writePiece(text, encoding);
  }

  end(): void {
    this.#response.end();
  }

  cut(): void {
    const { socket, writableNeedDrain } = this.#response;
    // What was written still arrives, unless the client reads too slowly.
    if (socket === null || writableNeedDrain) this.#response.destroy();
    else socket.destroySoon();
  }

  entered(row: Generation): void {
    this.#exchange.record = row;
  }

  onDrain(run: () => void): void {
    this.#response.on('drain', run);
  }

  onClose(run: () => void): void {
    this.#exchange.onClose(run);
  }
}
