/** One exchange on a connection that was checked. */
import type { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import type { Dispatcher } from 'undici';
import Client from 'undici/lib/dispatcher/client.js';
import type { EgressReply, EgressRequest } from './egress.ts';
import { EgressError } from './fault.ts';
import { compressed, type EgressStream, type Head, headOf, Streamed } from './streamed.ts';

export const REDIRECTS = new Set([301, 302, 303, 307, 308]);
const MOST_HEAD_BYTES = 32 * 1024;

/** One exchange on its own connection, closed afterwards: a checked address is used once. */
export async function hop(
  url: URL,
  request: EgressRequest,
  signal: AbortSignal,
  open: () => Promise<Socket>,
): Promise<EgressReply> {
  const { client, close } = clientOn(url, await open());
  try {
    return await new Promise<EgressReply>((resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
      client.dispatch(sent(url, request), new Gatherer(url, request, resolve, reject));
    });
  } finally {
    close();
  }
}

/** The same, whose connection stays open until the end of the body. @param over called once, when it is closed */
export async function streamed(
  url: URL,
  request: EgressRequest,
  signal: AbortSignal,
  open: () => Promise<Socket>,
  over: () => void,
): Promise<EgressStream> {
  let connection: Socket;
  try {
    connection = await open();
  } catch (error) {
    over();
    throw error;
  }
  const { client, close } = clientOn(url, connection);
  return new Promise<EgressStream>((resolve, reject) => {
    const body = new Streamed(request.maxBytes, resolve, (error) => {
      close();
      over();
      if (error !== undefined) reject(error);
    });
    signal.addEventListener('abort', () => body.fail(signal.reason as Error), { once: true });
    client.dispatch(sent(url, request), body);
  });
}

function clientOn(url: URL, socket: Socket): { client: Client; close(): void } {
  const client = new Client(url.origin, {
    // Deferred by a tick, because undici reads its queue after this call returns. A second connection is never made.
    connect: (_options, callback) =>
      process.nextTick(() => (socket.destroyed ? callback(new Error('closed'), null) : callback(null, socket))),
    pipelining: 1,
    headersTimeout: 0,
    bodyTimeout: 0,
    maxHeaderSize: MOST_HEAD_BYTES,
  });
  // The exchange's handler reports the same error.
  (client as EventEmitter).on('error', () => {});
  const close = () => {
    socket.destroy();
    void client.destroy().catch(() => {});
  };
  return { client, close };
}

function sent(url: URL, { method = 'GET', headers, body }: EgressRequest): Dispatcher.DispatchOptions {
  return {
    path: url.pathname + url.search,
    method,
    headers: { 'user-agent': 'gatehouse', ...headers, 'accept-encoding': 'identity' },
    body: body ?? null,
  };
}

/** Reads a response into memory, up to a limit. The body of a redirect is not read. */
class Gatherer implements Dispatcher.DispatchHandler {
  readonly #url: URL;
  readonly #maxBytes: number;
  readonly #headOnly: boolean;
  readonly #resolve: (reply: EgressReply) => void;
  readonly #reject: (error: Error) => void;
  readonly #chunks: Buffer[] = [];
  #head: Head = { status: 0, headers: {} };
  #size = 0;

  constructor(
    url: URL,
    { maxBytes, headOnly = false }: EgressRequest,
    resolve: (reply: EgressReply) => void,
    reject: (error: Error) => void,
  ) {
    this.#url = url;
    this.#maxBytes = maxBytes;
    this.#headOnly = headOnly;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  /** Its presence marks a handler of undici's current interface. */
  onRequestStart(): void {}

  onResponseStart(_controller: unknown, status: number, headers: Record<string, string | string[] | undefined>): void {
    if (status < 200) return;
    this.#head = headOf(status, headers);
    const kept = this.#head.headers;
    if (this.#headOnly || REDIRECTS.has(status)) this.#done();
    else if (Number(kept['content-length']) > this.#maxBytes) this.#tooLarge();
    else if (!/^(?:identity)?$/i.test(kept['content-encoding'] ?? '')) {
      this.#reject(compressed());
    }
  }

  onResponseData(_controller: unknown, chunk: Buffer): void {
    this.#size += chunk.length;
    if (this.#size > this.#maxBytes) this.#tooLarge();
    else this.#chunks.push(chunk);
  }

  onResponseEnd(): void {
    this.#done();
  }

  onResponseError(_controller: unknown, error: Error): void {
    this.#reject(error);
  }

  #done(): void {
    this.#resolve({ url: this.#url.href, ...this.#head, body: Buffer.concat(this.#chunks) });
  }

  #tooLarge(): void {
    this.#reject(new EgressError('size', `is larger than the limit of ${this.#maxBytes} bytes`));
  }
}
