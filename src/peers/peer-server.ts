/** The listening end, in a process that others may ask. */
import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { JSON_TYPE, PEER_KEY_BYTES, type PeerAddress, type PeerResponse, STREAM_TYPE, TLS } from './peer.ts';

interface PeerServerParts {
  /** Of this process. */
  id: string;
  clock: Clock;
  log: Log;
  /** Answers a request. What it throws is logged, and cuts the connection. */
  handle(body: unknown, response: PeerResponse): Promise<void>;
}

const MOST_CONNECTIONS = 2_048;
const MOST_BODY_BYTES = 4 * 1024 * 1024;
/** In which a request must have arrived. */
const ARRIVAL_MS = 10_000;
/** How long a process may take to read the end of its responses. */
const LAST_WORDS_MS = 1_000;

export class PeerServer {
  readonly #parts: PeerServerParts;
  readonly #key = randomBytes(PEER_KEY_BYTES);
  readonly #server: Server;

  constructor(parts: PeerServerParts) {
    this.#parts = parts;
    this.#server = createServer({
      ...TLS,
      pskCallback: (_, identity) => (identity === parts.id ? this.#key : null),
      ...{ handshakeTimeout: ARRIVAL_MS, headersTimeout: ARRIVAL_MS, requestTimeout: ARRIVAL_MS },
    });
    this.#server.maxConnections = MOST_CONNECTIONS;
    this.#server.on('request', (request, response) => void this.#answer(request, response));
  }

  /** On a free port. */
  async listen(host: string): Promise<PeerAddress> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#server.once('error', reject);
    this.#server.listen(0, host, resolve);
    await promise;
    this.#server.off('error', reject);
    this.#server.on('error', (error) => this.#parts.log.error('error of the listener for other processes', { error }));
    this.#server.unref();
    const { address, port } = this.#server.address() as AddressInfo;
    return { host: address, port, id: this.#parts.id, key: this.#key };
  }

  async close(): Promise<void> {
    if (!this.#server.listening) return;
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    this.#server.close(() => resolve());
    const cut = this.#parts.clock.timer(LAST_WORDS_MS, () => this.#server.closeAllConnections());
    await closed;
    cut.cancel();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // Requests are too rare to keep connections open for them.
    response.shouldKeepAlive = false;
    request.on('error', () => {});
    try {
      await this.#parts.handle(JSON.parse(await bodyOf(request)), new NodeResponse(response));
    } catch (error) {
      this.#parts.log.warn('a request of another process failed', { error });
      request.destroy();
    }
  }
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MOST_BODY_BYTES) throw new Error(`its body has more than ${MOST_BODY_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

class NodeResponse implements PeerResponse {
  readonly #response: ServerResponse;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  get closed(): boolean {
    return this.#response.destroyed || this.#response.writableEnded;
  }

  reply(body: object): void {
    this.#response.writeHead(200, { 'content-type': JSON_TYPE });
    this.#response.end(JSON.stringify(body));
  }

  open(): void {
    this.#response.writeHead(200, { 'content-type': STREAM_TYPE });
    this.#response.flushHeaders();
  }

  write(text: string): boolean {
    // As bytes: Node counts texts in bytes here and in characters in the socket, and may never report that it has drained.
    return this.closed || this.#response.write(Buffer.from(text));
  }

  end(): void {
    this.#response.end();
  }

  onDrain(run: () => void): void {
    this.#response.on('drain', run);
  }

  onClose(run: () => void): void {
    this.#response.once('close', () => {
      if (!this.#response.writableFinished) run();
    });
  }
}
