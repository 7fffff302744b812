/**
 * The scripted upstreams: one HTTP server that plays every provider of the suite, each below a path of its own, such as
 * `/chat/v1/chat/completions`. The text of a request names its case, and the case has the reply.
 */
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';

/** A text is one write; a promise is waited for. */
type Step = string | Buffer | Promise<unknown>;

export interface Script {
  status?: number;
  headers?: Readonly<Record<string, string>>;
  steps: readonly Step[];
  /** `complete` ends the body as HTTP says, `cut` closes the connection within it, `stall` stays silent. */
  end?: 'complete' | 'cut' | 'stall';
  /** Nothing is sent, not even a status, until the gateway closes the connection. */
  silent?: boolean;
}

export interface Received {
  /** The first part of the path. */
  upstream: string;
  /** The whole path. */
  path: string;
  headers: IncomingHttpHeaders;
  text: string;
  body: unknown;
  /** Resolves when the gateway closes the connection before the answer is complete. */
  closedEarly: Promise<void>;
}

export interface Play {
  /** Once for every request of the case; `attempt` counts from 0. */
  script(received: Received, attempt: number): Script;
  received: Received[];
  /** Called for every request, after it is in `received`. */
  arrived?: () => void;
}

const CASE = /conformance-case-(\d+)-/g;
const REFUSAL = JSON.stringify({
  type: 'error',
  error: { type: 'invalid_request_error', message: 'messages or input: a list of messages with content is needed' },
});
const MAX_BODY_BYTES = 64 * 1024 * 1024;

/** The text in a request that names its case. */
export function tagOf(id: number): string {
  return `conformance-case-${id}-`;
}

export class Upstreams {
  readonly #server: Server;
  readonly #plays = new Map<number, Play>();
  #nextId = 1;

  constructor() {
    this.#server = createServer((request, response) => void this.#answer(request, response));
    this.#server.keepAliveTimeout = 60_000;
  }

  /** Rejects if the port is taken. @returns the port, also when 0 was given */
  async listen(port: number): Promise<number> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(port, '127.0.0.1', resolve);
    });
    return (this.#server.address() as AddressInfo).port;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  /** @returns the number of the case, for `tagOf` */
  add(play: Play): number {
    const id = this.#nextId++;
    this.#plays.set(id, play);
    return id;
  }

  remove(id: number): void {
    this.#plays.delete(id);
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on('error', () => {});
    const text = await bodyOf(request);
    if (text === undefined) return void response.destroy();
    // A gateway may add to a text, so the last name counts.
    const id = Number([...text.matchAll(CASE)].at(-1)?.[1]);
    const play = this.#plays.get(id);
    if (play === undefined) {
      // Some gateways read the list of models when they start. A request without a text is refused, as vendors do.
      const isList = request.method === 'GET';
      response.writeHead(isList ? 200 : 400, { 'content-type': 'application/json' });
      return void response.end(isList ? '{"object":"list","data":[]}' : REFUSAL);
    }
    const closedEarly = Promise.withResolvers<void>();
    response.once('close', () => {
      if (!response.writableFinished) closedEarly.resolve();
    });
    const path = request.url?.split('?')[0] ?? '';
    const received: Received = {
      ...{ upstream: path.split('/')[1] ?? '', path, headers: request.headers, text, body: parsed(text) },
      closedEarly: closedEarly.promise,
    };
    play.received.push(received);
    play.arrived?.();
    await perform(play.script(received, play.received.length - 1), response, closedEarly.promise);
  }
}

async function bodyOf(request: IncomingMessage): Promise<string | undefined> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const piece of request as AsyncIterable<Buffer>) {
      bytes += piece.length;
      if (bytes > MAX_BODY_BYTES) return undefined;
      pieces.push(piece);
    }
  } catch {
    return undefined;
  }
  return Buffer.concat(pieces).toString();
}

async function perform(script: Script, response: ServerResponse, closed: Promise<void>): Promise<void> {
  if (script.silent) return;
  response.writeHead(script.status ?? 200, script.headers).flushHeaders();
  for (const step of script.steps) {
    if (step instanceof Promise) await Promise.race([step, closed]);
    else await Promise.race([new Promise((resolve) => void response.write(step, resolve)), closed]);
    if (response.destroyed) return;
    // A turn of the event loop keeps two pieces from arriving as one.
    await new Promise<void>((resolve) => void setImmediate(resolve));
  }
  if (script.end === 'cut') response.socket?.end();
  else if (script.end !== 'stall') response.end();
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
