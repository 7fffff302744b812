/** node's request and response as an exchange wants them: less in between, and less to put together. */
import { type IncomingHttpHeaders, IncomingMessage, type OutgoingHttpHeaders, ServerResponse } from 'node:http';

/** Who reads a request's body. */
interface BodyReader {
  /** False: no more for now; `more` asks for it. */
  receive(chunk: Buffer): boolean;
  received(): void;
}

/**
 * node's request with a way back to its exchange, and without a stream in between: what the parser pushes goes straight to
 * the exchange once that reads, which saves a small request a tenth of what it costs. Until then it is kept here, and the
 * socket rests once that is as much as a stream would keep. (Not before: what stands behind another request in one packet
 * would ask for rest while node is still about to go on, and node hears that only once. And the leaving of a client whose
 * socket rests is not heard.)
 */
export class GatewayRequest extends IncomingMessage {
  exchange: { finished(): void } | undefined = undefined;
  #reader: BodyReader | undefined = undefined;
  #kept: Buffer[] | undefined = undefined;
  #keptBytes = 0;
  /** All of the body has come. */
  ended = false;
  /** The headers, once somebody has asked for them. */
  known: IncomingHttpHeaders | undefined = undefined;

  /** Lets the body flow into `reader`, what has come of it first of all. */
  readInto(reader: BodyReader): void {
    this.#reader = reader;
    const kept = this.#kept;
    this.#kept = undefined;
    for (const chunk of kept ?? []) reader.receive(chunk);
    if (this.ended) reader.received();
    else this.more();
  }

  /** Lets the socket flow after `receive` has returned false. */
  more(): void {
    this._read(0);
  }

  /** Called by node's parser with each piece of the body, and with null behind the last. False: no more for now. */
  override push(chunk: Buffer | null): boolean {
    if (chunk === null) {
      this.ended = true;
      this.#reader?.received();
      // node lets go of a request that ends behind its answer.
      if (this.listenerCount('end') > 0) this.emit('end');
      return true;
    }
    if (this.#reader !== undefined) return this.#reader.receive(chunk);
    this.#kept ??= [];
    this.#kept.push(chunk);
    this.#keptBytes += chunk.length;
    return this.#keptBytes < this.readableHighWaterMark;
  }
}

const nodeHeaders = Object.getOwnPropertyDescriptor(IncomingMessage.prototype, 'headers')!.get!;

Object.defineProperty(GatewayRequest.prototype, 'headers', {
  get(this: GatewayRequest) {
    this.known ??= singleHeaders(this.rawHeaders) ?? (nodeHeaders.call(this) as IncomingHttpHeaders);
    return this.known;
  },
});

/** What node makes of headers of which none stands twice; undefined where one does, or is always a list. */
function singleHeaders(raw: readonly string[]): IncomingHttpHeaders | undefined {
  const headers: IncomingHttpHeaders = {};
  for (let at = 0; at < raw.length; at += 2) {
    const name = lowerCase(raw[at]!);
    if (headers[name] !== undefined || name === 'set-cookie') return undefined;
    headers[name] = raw[at + 1];
  }
  return headers;
}

/** Clients write few names, and always the same: a text that is known to the engine is found and set more quickly. */
const lowerCaseNames = new Map<string, string>();
const MOST_NAMES = 256;

function lowerCase(name: string): string {
  const known = lowerCaseNames.get(name);
  if (known !== undefined) return known;
  const lower = name.toLowerCase();
  if (lowerCaseNames.size < MOST_NAMES) lowerCaseNames.set(name, lower);
  return lower;
}

// By this node tells a request that was read from one that was broken off. (Declared a property, which a class cannot override.)
Object.defineProperty(GatewayRequest.prototype, 'readableEnded', {
  get(this: GatewayRequest) {
    return this.ended;
  },
});

/** node's answer with headers that stand in every one of an exchange. They go out with the others, set once. */
export class GatewayResponse extends ServerResponse<GatewayRequest> {
  readonly common: Record<string, string> = {};
  /** Milliseconds; by it node tells a client how long its connection waits, in the answers behind which it stays open. */
  declare _keepAliveTimeout: number;

  override writeHead(status: number, headers?: OutgoingHttpHeaders): this;
  override writeHead(status: number, message: string): this;
  override writeHead(status: number, headers?: OutgoingHttpHeaders | string): this {
    if (typeof headers === 'string') throw new Error('the message of a status is the standard one');
    return super.writeHead(status, { ...this.common, ...headers });
  }

  /** Cuts its connection; behind another answer that is still written, which is to arrive whole, once its own turn comes. */
  override destroy(error?: Error): this {
    // node would give the connection to what is destroyed, and wait for its end for ever.
    if (!this.destroyed && !this.socket) this.once('socket', (socket) => socket.destroy(error));
    return super.destroy(error);
  }

  /**
   * Writes a piece of a stream at once, after `writeHead`; false when the reader is slow, who tells of it by `drain`. Chunked,
   * it leaves with its frame as one string: node makes four pieces of it, and waits a tick for more.
   */
  writePiece(text: string): boolean {
    if (text === '') return true;
    if (!this.chunkedEncoding) return this.write(text);
    const { socket } = this;
    // node corks a socket that is not, until the next tick.
    socket?.cork();
    this.chunkedEncoding = false;
    const goesOn = this.write(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`);
    this.chunkedEncoding = true;
    socket?.uncork();
    return goesOn;
  }
}
