/** An HTTP client on a bare socket, for requests that no library would send. */
import { connect, type Socket } from 'node:net';

export interface RawResponse {
  status: number;
  /** Lower-case names. */
  headers: Record<string, string>;
  body: string;
  json(): unknown;
}

export class RawClient {
  readonly socket: Socket;
  /** Resolves when the connection is gone, however it went. */
  readonly closed: Promise<void>;
  #received: Buffer = Buffer.alloc(0);
  #ended = false;
  #wake: (() => void) | undefined;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (chunk: Buffer) => {
      this.#received = Buffer.concat([this.#received, chunk]);
      this.#wake?.();
    });
    // A reset is a way to end like any other here.
    socket.on('error', () => {});
    this.closed = new Promise((resolve) => {
      socket.on('close', () => {
        this.#ended = true;
        this.#wake?.();
        resolve();
      });
    });
  }

  static async open(port: number): Promise<RawClient> {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    const client = new RawClient(socket);
    await new Promise<void>((resolve, reject) => {
      socket.once('connect', resolve);
      socket.once('error', reject);
    });
    return client;
  }

  /** Resolves when the bytes are handed to the system. */
  send(data: string | Buffer): Promise<void> {
    return new Promise((resolve) => this.socket.write(data, () => resolve()));
  }

  /** Sends a request with a head made of `lines` (the Host header is added) and waits for its answer. */
  async ask(lines: readonly string[], body: string | Buffer = ''): Promise<RawResponse> {
    await this.send(head(lines));
    if (body.length > 0) await this.send(body);
    return this.response(lines[0]?.startsWith('HEAD '));
  }

  /** The next answer, interim ones (1xx) included. Rejects when the connection ends before it is whole. */
  async response(withoutBody = false): Promise<RawResponse> {
    const end = await this.#find('\r\n\r\n', 0);
    const [statusLine = '', ...lines] = this.#received.toString('latin1', 0, end).split('\r\n');
    const headers: Record<string, string> = {};
    for (const line of lines)
      headers[line.slice(0, line.indexOf(':')).toLowerCase()] = line.slice(line.indexOf(':') + 1).trim();
    const status = Number(statusLine.split(' ')[1]);
    this.#received = this.#received.subarray(end + 4);
    const hasBody = !withoutBody && status >= 200 && status !== 204 && status !== 304;
    const bytes = hasBody ? await this.#body(headers) : Buffer.alloc(0);
    const body = bytes.toString();
    return { status, headers, body, json: () => JSON.parse(body) };
  }

  /** Waits until `text` has arrived, and takes everything up to its end. */
  async read(text: string): Promise<string> {
    const at = await this.#find(text, 0);
    return this.#take(at + Buffer.byteLength(text)).toString();
  }

  leave(): void {
    this.socket.destroy();
  }

  async #body(headers: Record<string, string>): Promise<Buffer> {
    if (headers['transfer-encoding'] === 'chunked') {
      const parts: Buffer[] = [];
      for (;;) {
        const size = Number.parseInt(this.#take((await this.#find('\r\n', 0)) + 2).toString(), 16);
        await this.#until(() => this.#received.length >= size + 2);
        parts.push(this.#take(size));
        this.#take(2);
        if (size === 0) return Buffer.concat(parts);
      }
    }
    const length = Number(headers['content-length'] ?? 0);
    await this.#until(() => this.#received.length >= length);
    return this.#take(length);
  }

  async #find(text: string, from: number): Promise<number> {
    await this.#until(() => this.#received.indexOf(text, from) !== -1);
    return this.#received.indexOf(text, from);
  }

  #take(length: number): Buffer {
    const taken = this.#received.subarray(0, length);
    this.#received = this.#received.subarray(length);
    return taken;
  }

  async #until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      if (this.#ended)
        throw new Error(`the connection ended after ${JSON.stringify(this.#received.toString('latin1'))}`);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}

/** The head of a request with the given request line and headers. */
export function head(lines: readonly string[]): string {
  const [first, ...rest] = lines;
  return [first, 'Host: gateway.test', ...rest].join('\r\n') + '\r\n\r\n';
}
