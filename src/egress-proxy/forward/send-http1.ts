/** Sends a request of HTTP/1.1 to a host: its head and a small body in one write. */
import type { Destination } from '../destination.ts';
import { Refusal } from '../refusal.ts';
import type { Sink } from './bodies.ts';
import type { Pair } from './heads.ts';
import type { HostConnection, HostConnections } from './host-connections.ts';
import { ReceivedBody } from './received-body.ts';
import { type Answer, authorityOf, type BodyLength, broken, type Outgoing, type Sent } from './send.ts';

/** @param defaultPort the port that the Host header leaves out @throws Refusal */
export async function sendHttp1(outgoing: Outgoing, connections: HostConnections, defaultPort = 443): Promise<Sent> {
  const exchange = new Http1Exchange(outgoing, headText(outgoing, defaultPort), connections);
  exchange.carriedBy(await connections.take());
  return exchange;
}

/** Values of secrets were checked where they were put in; this is about all the rest, and the last check before the bytes leave. */
const NO_NAME = /[^!#$%&'*+\-.^_`|~\w]/;
const NO_VALUE = /[^\t\x20-\x7e\x80-\xff]/;
const NO_PATH = /[^\x21-\x7e\x80-\xff]/;

function headText({ head, destination, length }: Outgoing, defaultPort: number): string {
  const { method, path, pairs } = head;
  if (NO_PATH.test(path) || NO_NAME.test(method)) throw unsendable();
  const text = `${method} ${path} HTTP/1.1\r\nhost: ${authorityOf(destination, defaultPort)}\r\n${linesOf(pairs)}`;
  if (length === 'none') return `${text}\r\n`;
  return `${text}${length === 'unknown' ? 'transfer-encoding: chunked' : `content-length: ${length}`}\r\n\r\n`;
}

function linesOf(pairs: readonly Pair[]): string {
  let text = '';
  for (const [name, value] of pairs) {
    if (name === '' || NO_NAME.test(name) || NO_VALUE.test(value)) throw unsendable();
    text += `${name}: ${value}\r\n`;
  }
  return text;
}

/** A second one has the effect of one (RFC 9110, section 9.2.2). */
const IDEMPOTENT = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE']);

function unsendable(): Refusal {
  return new Refusal('bad_request', 'The path or a header has a character that HTTP/1.1 does not allow.');
}

class Http1Exchange implements Sent, Sink {
  readonly answer: Promise<Answer>;
  readonly #resolve: (answer: Answer) => void;
  readonly #reject: (refusal: Refusal) => void;
  readonly #destination: Destination;
  readonly #length: BodyLength;
  readonly #method: string;
  readonly #connections: HostConnections;
  readonly #received = new ReceivedBody({ resume: () => this.#connection.socket.resume(), drop: () => this.abort() });
  #connection!: HostConnection;
  readonly #text: string;
  /** What is sent before the next bytes of the body. */
  #before: string;
  #trailers: readonly Pair[] = [];
  #isBegun = false;
  #isRepeated = false;
  #isAnswered = false;
  #isAborted = false;

  constructor({ head, destination, length }: Outgoing, text: string, connections: HostConnections) {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    promise.catch(() => {});
    this.answer = promise;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#destination = destination;
    this.#length = length;
    this.#method = head.method;
    this.#text = text;
    this.#before = text;
    this.#connections = connections;
  }

  carriedBy(connection: HostConnection): void {
    this.#connection = connection;
    this.#isBegun = false;
    connection.carry(this);
  }

  #begin(): void {
    if (this.#isBegun) return;
    this.#isBegun = true;
    this.#connection.begin(this.#method === 'HEAD');
  }

  get body(): Sink {
    return this;
  }

  abort(): void {
    this.#isAborted = true;
    this.#connection.drop(this);
  }

  // The request's body.

  get destroyed(): boolean {
    return this.#connection.socket.destroyed;
  }

  once(event: 'drain' | 'close', listener: () => void): void {
    this.#connection.socket.once(event, listener);
  }

  removeListener(event: 'drain' | 'close', listener: () => void): void {
    this.#connection.socket.removeListener(event, listener);
  }

  write(bytes: Buffer): boolean {
    const { socket } = this.#connection;
    if (socket.destroyed) return false;
    if (bytes.length > 0) {
      const isChunked = this.#length === 'unknown';
      const before = isChunked ? `${this.#before}${bytes.length.toString(16)}\r\n` : this.#before;
      this.#before = isChunked ? '\r\n' : '';
      this.#begin();
      socket.cork();
      if (before !== '') socket.write(before, 'latin1');
      socket.write(bytes);
      socket.uncork();
    }
    return !socket.writableNeedDrain;
  }

  /** @param text the rest of the body, in Latin-1 */
  end(text = ''): void {
    if (text !== '' && this.#length === 'unknown') this.write(Buffer.from(text, 'latin1'));
    const rest = this.#length === 'unknown' ? this.#lastChunk([]) : this.#before + text;
    this.#end(rest);
  }

  finish(trailers: readonly Pair[]): void {
    this.#end(this.#length === 'unknown' ? this.#lastChunk(trailers) : this.#before);
  }

  #lastChunk(trailers: readonly Pair[]): string {
    return `${this.#before}0\r\n${linesOf(trailers)}\r\n`;
  }

  #end(rest: string): void {
    this.#before = '';
    this.#begin();
    if (rest !== '' && !this.destroyed) this.#connection.socket.write(rest, 'latin1');
    this.#connection.written();
  }

  // Called by the connection.

  get holds(): boolean {
    return this.#received.holds;
  }

  head(status: number, pairs: Pair[], statusText: string): void {
    this.#isAnswered = true;
    this.#resolve({ status, statusText, pairs, body: this.#received, trailers: () => this.#trailers });
  }

  data(chunk: Buffer): void {
    this.#received.add(chunk);
  }

  ended(trailers: Pair[]): void {
    this.#trailers = trailers;
    this.#received.end();
  }

  broken(): void {
    if (this.#isAnswered) this.#received.cut();
    else if (this.#mayRepeat) void this.#again();
    else this.#reject(broken(undefined, this.#destination));
  }

  /** The host may have closed an idle connection at the moment when the request was sent, or may have acted on it and then failed. */
  get #mayRepeat(): boolean {
    if (this.#isAborted || this.#isRepeated || !this.#connection.isReused) return false;
    return this.#length === 'none' && IDEMPOTENT.has(this.#method);
  }

  async #again(): Promise<void> {
    this.#isRepeated = true;
    try {
      const connection = await this.#connections.open();
      this.carriedBy(connection);
      if (this.#isAborted) return connection.drop(this);
      this.#end(this.#text);
    } catch (error) {
      this.#reject(broken(error, this.#destination));
    }
  }
}
