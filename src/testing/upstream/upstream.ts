/**
 * The scripted upstream: a real HTTP server on a free loopback port that answers as a test says, piece by piece, and keeps
 * what it was asked. One server plays any number of upstreams; each has a key, which is the first part of its paths.
 *
 *     const upstream = await startUpstream();
 *     const baseUrl = upstream.script('first', [{ status: 529 }, { chunks: ['data: {}\n\n', { gate: 'more' }, '...'] }]);
 *     ... upstream.open('more'); upstream.requests('first')[0].json; await upstream.close();
 */
import { once } from 'node:events';
import http, { type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import https from 'node:https';
import net, { type AddressInfo, type Socket } from 'node:net';
import { until } from '../clock/clock.ts';
import { cutBytes } from '../recordings/cuts.ts';

/** A piece of the body, or a wait: for a signal of the test (`open(name)`), for a promise, or for real milliseconds. */
export type Chunk =
  | string
  | Buffer
  | { hex: string }
  | { gate: string | Promise<unknown> }
  | { pauseMs: number }
  | { text: string; delay_ms: number };

export interface Answer {
  status?: number;
  /** With a `content-length` the body is sent as it is, otherwise chunked. */
  headers?: Record<string, string>;
  /** Each is one write, after the kernel has taken the previous one. */
  chunks?: readonly Chunk[];
  /** Written to the connection as it is, status line included, instead of `status`, `headers` and the HTTP framing. */
  raw?: readonly Chunk[];
  /**
   * After the chunks: `close` completes the answer; `cut` closes the connection cleanly without completing it; `reset`
   * breaks it; `stall` stays silent with the connection open. `stall-before-headers` answers nothing at all, and `refuse`
   * is a port without a listener (it must be the only answer of its key).
   */
  end?: 'close' | 'cut' | 'reset' | 'stall' | 'stall-before-headers' | 'refuse';
  /** Splits all text of the body again: into pieces of so many bytes, or at these positions. Waits are dropped. */
  pieces?: number | readonly number[];
  /** Only the first so many bytes of the body are sent; `end` says what follows them. */
  truncateAt?: number;
  /** Answers this request and all that follow. */
  repeat?: boolean;
}

export interface ReceivedRequest {
  key: string;
  method: string;
  /** Below the key, query included, e.g. `/chat/completions`. */
  path: string;
  headers: IncomingHttpHeaders;
  /** Names and values in turn, as on the wire. */
  rawHeaders: string[];
  body: Buffer;
  /** The body parsed; undefined when it is not JSON. */
  json: unknown;
  /** Real milliseconds (`performance.now`) when the head arrived. */
  arrivedAt: number;
  /** Counts the connections of the server, so that two requests with one number shared one. */
  connection: number;
  /** The answer was completed as scripted. */
  answered: boolean;
  /** Real milliseconds when the client closed before that; undefined while it has not. */
  closedEarlyAt: number | undefined;
}

export interface UpstreamOptions {
  /** Serves HTTPS. */
  tls?: { key: string; cert: string };
}

/** Starts one; the test must close it. */
export async function startUpstream(options: UpstreamOptions = {}): Promise<Upstream> {
  const upstream = new Upstream(options);
  await upstream.listen();
  return upstream;
}

export class Upstream {
  readonly #server: http.Server | https.Server;
  readonly #scheme: string;
  readonly #scripts = new Map<string, Answer[]>();
  readonly #received: ReceivedRequest[] = [];
  readonly #gates = new Map<string, PromiseWithResolvers<void>>();
  readonly #sockets = new Map<Socket, number>();
  #accepted = 0;
  #port = 0;
  #closedPort = 0;

  constructor(options: UpstreamOptions) {
    const answer = (request: IncomingMessage, response: ServerResponse) => void this.#answer(request, response);
    this.#scheme = options.tls ? 'https' : 'http';
    this.#server = options.tls ? https.createServer(options.tls, answer) : http.createServer(answer);
    this.#server.keepAliveTimeout = 60_000;
    this.#server.on('connection', (socket: Socket) => {
      this.#sockets.set(socket, ++this.#accepted);
      socket.on('error', () => {});
      socket.on('close', () => this.#sockets.delete(socket));
    });
  }

  /** Opens the port, again on the same number after `refuse`. */
  async listen(): Promise<void> {
    this.#server.listen(this.#port, '127.0.0.1');
    await once(this.#server, 'listening');
    this.#port = (this.#server.address() as AddressInfo).port;
    this.#closedPort ||= await unusedPort();
  }

  get url(): string {
    return `${this.#scheme}://127.0.0.1:${this.#port}`;
  }

  /** Connections accepted so far. */
  get accepted(): number {
    return this.#accepted;
  }

  /** Connections that are open now. */
  get connections(): number {
    return this.#sockets.size;
  }

  /**
   * Sets the answers of one upstream, in the order of its requests, and yields its base URL. One answer that is not in a
   * list repeats. A request beyond the list gets 599, which no test can take for a scripted one.
   */
  script(key: string, answers: Answer | readonly Answer[]): string {
    const list = Array.isArray(answers) ? [...answers] : [{ ...(answers as Answer), repeat: true }];
    if (list.some(({ end }) => end === 'refuse')) {
      if (list.length > 1) throw new Error('refuse must be the only answer of its key');
      return `${this.#scheme}://127.0.0.1:${this.#closedPort}/${key}`;
    }
    this.#scripts.set(key, list);
    return `${this.url}/${key}`;
  }

  /** What was asked so far, of one key or at all, in order of arrival. */
  requests(key?: string): readonly ReceivedRequest[] {
    return key === undefined ? this.#received : this.#received.filter((request) => request.key === key);
  }

  /** The `count`th request of the key, once it has arrived whole. */
  async request(key: string, count = 1): Promise<ReceivedRequest> {
    return until(() => this.requests(key)[count - 1], `request ${count} of ${key}`);
  }

  /** Lets every answer pass that waits, or will wait, at this gate. */
  open(gate: string): void {
    this.#gate(gate).resolve();
  }

  /** Stops listening and closes every connection, so that further ones are refused until `listen`. */
  async refuse(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    for (const socket of this.#sockets.keys()) socket.destroy();
    await closed;
  }

  async close(): Promise<void> {
    if (this.#server.listening) await this.refuse();
  }

  #gate(name: string): PromiseWithResolvers<void> {
    let gate = this.#gates.get(name);
    if (gate === undefined) {
      gate = Promise.withResolvers<void>();
      this.#gates.set(name, gate);
    }
    return gate;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const closed = once(response, 'close').catch(() => {});
    const received = await this.#receive(request, response);
    if (received === undefined) return;
    const list = this.#scripts.get(received.key) ?? [];
    const answer = list[0]?.repeat ? list[0] : list.shift();
    response.once('close', () => {
      if (!received.answered && !response.writableFinished) received.closedEarlyAt = performance.now();
    });
    response.on('error', () => {});
    if (answer === undefined) {
      response.writeHead(599).end(`no answer is scripted for ${received.key} ${received.path}`);
    } else if (answer.end !== 'stall-before-headers') {
      await this.#play(answer, received, response, closed);
    }
  }

  async #receive(request: IncomingMessage, response: ServerResponse): Promise<ReceivedRequest | undefined> {
    const arrivedAt = performance.now();
    const [, key = '', path = '/'] = /^\/([^/?]*)(.*)$/.exec(request.url ?? '') ?? [];
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request) chunks.push(chunk as Buffer);
    } catch {
      response.destroy();
      return undefined;
    }
    const body = Buffer.concat(chunks);
    const { method = '', headers, rawHeaders } = request;
    const carrier = this.#carrier(request.socket);
    const connection = (carrier && this.#sockets.get(carrier)) ?? 0;
    const json = parsed(body);
    const seen = { key, method, path, headers, rawHeaders, body, json, arrivedAt, connection };
    const received: ReceivedRequest = { ...seen, answered: false, closedEarlyAt: undefined };
    this.#received.push(received);
    return received;
  }

  async #play(
    answer: Answer,
    received: ReceivedRequest,
    response: ServerResponse,
    closed: Promise<unknown>,
  ): Promise<void> {
    const socket = response.socket!;
    const target = answer.raw ? socket : response;
    if (!answer.raw) response.writeHead(answer.status ?? 200, answer.headers).flushHeaders();
    for (const chunk of bodyChunks(answer)) {
      if (typeof chunk === 'string' || Buffer.isBuffer(chunk)) {
        const taken = new Promise((resolve) => void target.write(chunk, resolve));
        await Promise.race([taken, closed]);
        // A turn of the loop between two pieces keeps them from arriving as one.
        await new Promise<void>((resolve) => setImmediate(resolve));
      } else {
        await Promise.race([this.#wait(chunk), closed]);
      }
      if (response.destroyed || socket.destroyed) return;
    }
    received.answered = answer.end !== 'stall';
    switch (answer.end ?? 'close') {
      case 'close':
        if (!answer.raw) await Promise.race([new Promise<void>((resolve) => response.end(resolve)), closed]);
        break;
      case 'cut':
        socket.end();
        break;
      case 'reset':
        // A reset discards what the client has not read yet, so it gets a moment for that.
        await new Promise<void>((resolve) => setTimeout(resolve, 20));
        this.#reset(socket);
        break;
    }
  }

  /**
   * A connection whose end is on its way, as the client closed it first, is closed instead: the kernel's handle refuses to
   * be reset then, and Node neither closes it afterwards nor ends the process, which spins in its last clean-up.
   */
  #reset(socket: Socket): void {
    const carrier = this.#carrier(socket);
    if (carrier === undefined || carrier.writableEnded || socket.writableEnded) (carrier ?? socket).destroy();
    else carrier.resetAndDestroy();
  }

  /** The TCP socket below a TLS one, which has the same peer. Sockets that are closed have none, so they have no carrier. */
  #carrier(socket: Socket): Socket | undefined {
    if (this.#sockets.has(socket)) return socket;
    const port = socket.remotePort;
    if (port === undefined) return undefined;
    for (const carrier of this.#sockets.keys()) if (carrier.remotePort === port) return carrier;
    return undefined;
  }

  async #wait(chunk: { gate: string | Promise<unknown> } | { pauseMs: number }): Promise<void> {
    if ('pauseMs' in chunk) await new Promise<void>((resolve) => setTimeout(resolve, chunk.pauseMs));
    else if (typeof chunk.gate === 'string') await this.#gate(chunk.gate).promise;
    else await chunk.gate;
  }
}

type Step = string | Buffer | { gate: string | Promise<unknown> } | { pauseMs: number };

/** The body as it is to be written: as scripted, or split again. */
function bodyChunks(answer: Answer): Step[] {
  const steps: Step[] = [];
  for (const chunk of answer.raw ?? answer.chunks ?? []) {
    if (typeof chunk === 'object' && 'hex' in chunk) steps.push(Buffer.from(chunk.hex, 'hex'));
    else if (typeof chunk === 'object' && 'delay_ms' in chunk) steps.push({ pauseMs: chunk.delay_ms }, chunk.text);
    else steps.push(chunk);
  }
  if (answer.pieces === undefined && answer.truncateAt === undefined) return steps.filter((step) => step !== '');
  const texts = steps.filter((step) => typeof step === 'string' || Buffer.isBuffer(step));
  const bytes = Buffer.concat(texts.map((text) => Buffer.from(text))).subarray(0, answer.truncateAt);
  return cutBytes(bytes, answer.pieces ?? []);
}

/** A port of this machine without a listener. */
async function unusedPort(): Promise<number> {
  const server = net.createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    return undefined;
  }
}
