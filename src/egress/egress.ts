/** One fetch: each redirect is checked again, under one deadline and one size limit. */
import type { EventEmitter } from 'node:events';
import type { Dispatcher } from 'undici';
import Client from 'undici/lib/dispatcher/client.js';
import type { Clock } from '../base/clock.ts';
import type { EgressSettings } from '../base/config.ts';
import { checkAddress, connect, type Dialling, NETWORK } from './dial.ts';
import { EgressError } from './fault.ts';
import { EgressRules } from './rules.ts';

export interface EgressRequest {
  /** As the user gave it. */
  url: string;
  /** Default GET. Redirects are followed for GET only. */
  method?: 'GET' | 'POST' | 'PUT';
  /** Headers set by the caller. Those that identify it, such as `authorization`, are not sent to another host. */
  headers?: Readonly<Record<string, string>>;
  body?: Buffer | string;
  /** The most bytes of the response body, uncompressed: compression is neither requested nor accepted. */
  maxBytes: number;
  /** Plain http is refused, except to networks that the operator allows. */
  tlsOnly?: boolean;
  /** Default `follow`. `return` resolves with a redirect instead, whose body is not read. */
  redirects?: 'follow' | 'return';
  /** Resolves with the head of the response, whose body is not read. */
  headOnly?: boolean;
  /** For everything together: names, connections, redirects, body. */
  timeoutMs: number;
  signal?: AbortSignal;
}

export interface EgressReply {
  /** The URL at the end of the redirects. */
  url: string;
  status: number;
  /** Names in lower case; of repeated headers, the first value. */
  headers: Readonly<Record<string, string>>;
  body: Buffer;
}

export interface Egress {
  /** Checks a URL without resolving its host name. @throws EgressError */
  check(request: Pick<EgressRequest, 'url' | 'tlsOnly'>): void;
  /** @throws EgressError; a response with an error status does not throw */
  request(request: EgressRequest): Promise<EgressReply>;
  /** Aborts every running fetch. */
  close(): Promise<void>;
}

export interface EgressOptions {
  clock: Clock;
  /** The current configuration. */
  settings(): EgressSettings;
  /** Replaces resolving and connecting in tests. */
  dialling?: Dialling;
}

export function createEgress(options: EgressOptions): Egress {
  return new CheckedEgress(options);
}

const MOST_REDIRECTS = 5;
const REDIRECTS = new Set([301, 302, 303, 307, 308]);
/** Concurrent fetches of one process; each holds a socket and memory up to its limit. */
const MOST_AT_ONCE = 64;
const MOST_WAITING = 512;
const MOST_HEAD_BYTES = 32 * 1024;
/** Headers that identify the caller, so they are sent to the first host only. */
const PERSONAL = /^(?:authorization|proxy-authorization|cookie|x-api-key|x-key)$/i;

class CheckedEgress implements Egress {
  readonly #options: EgressOptions;
  readonly #running = new Set<AbortController>();
  readonly #waiting: (() => void)[] = [];
  #atOnce = 0;
  #rules: { of: EgressSettings; rules: EgressRules } | undefined;
  #closed = false;

  constructor(options: EgressOptions) {
    this.#options = options;
  }

  async request(request: EgressRequest): Promise<EgressReply> {
    const rules = this.#currentRules();
    const first = rules.url(request.url);
    if (this.#closed) throw new EgressError('cancelled', 'was not fetched: the gateway is shutting down');
    const controller = new AbortController();
    const stop = (fault: 'time' | 'cancelled', message: string) => controller.abort(new EgressError(fault, message));
    const cancel = () => stop('cancelled', 'was cancelled');
    const timer = this.#options.clock.timer(request.timeoutMs, () =>
      stop('time', `could not be fetched within ${request.timeoutMs} ms`),
    );
    request.signal?.addEventListener('abort', cancel);
    if (request.signal?.aborted) cancel();
    this.#running.add(controller);
    try {
      return await this.#inTurn(controller.signal, () => this.#follow(first, request, rules, controller.signal));
    } catch (error) {
      throw controller.signal.aborted ? controller.signal.reason : asFault(error);
    } finally {
      timer.cancel();
      request.signal?.removeEventListener('abort', cancel);
      this.#running.delete(controller);
    }
  }

  check({ url, tlsOnly = false }: Pick<EgressRequest, 'url' | 'tlsOnly'>): void {
    const rules = this.#currentRules();
    checkAddress(rules.url(url), rules, tlsOnly);
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const controller of this.#running) {
      controller.abort(new EgressError('cancelled', 'was not fetched: the gateway is shutting down'));
    }
  }

  #currentRules(): EgressRules {
    const settings = this.#options.settings();
    if (this.#rules?.of !== settings) this.#rules = { of: settings, rules: new EgressRules(settings) };
    return this.#rules.rules;
  }

  async #inTurn<T>(signal: AbortSignal, run: () => Promise<T>): Promise<T> {
    if (this.#atOnce >= MOST_AT_ONCE) await this.#turn(signal);
    else this.#atOnce++;
    try {
      signal.throwIfAborted();
      return await run();
    } finally {
      // The slot passes to the next fetch in line, if there is one.
      const next = this.#waiting.shift();
      if (next) next();
      else this.#atOnce--;
    }
  }

  #turn(signal: AbortSignal): Promise<void> {
    if (this.#waiting.length >= MOST_WAITING) {
      throw new EgressError('busy', 'was not fetched: too many fetches are running');
    }
    return new Promise((resolve, reject) => {
      const go = () => {
        signal.removeEventListener('abort', abort);
        resolve();
      };
      const abort = () => {
        this.#waiting.splice(this.#waiting.indexOf(go), 1);
        reject(signal.reason);
      };
      this.#waiting.push(go);
      signal.addEventListener('abort', abort, { once: true });
      if (signal.aborted) abort();
    });
  }

  async #follow(first: URL, request: EgressRequest, rules: EgressRules, signal: AbortSignal): Promise<EgressReply> {
    let url = first;
    for (let hops = 0; ; hops++) {
      signal.throwIfAborted();
      const headers = url.host === first.host ? request.headers : withoutCaller(request.headers);
      const reply = await hop(url, { ...request, headers: headers ?? {} }, signal, () =>
        connect(url, rules, { ...(this.#options.dialling ?? NETWORK), tlsOnly: request.tlsOnly ?? false }, signal),
      );
      const location = reply.headers['location'];
      const follows =
        REDIRECTS.has(reply.status) && (request.method ?? 'GET') === 'GET' && request.redirects !== 'return';
      if (!follows || location === undefined) return reply;
      if (hops === MOST_REDIRECTS) throw new EgressError('redirect', `redirects more than ${MOST_REDIRECTS} times`);
      const next = rules.url(location, url);
      if (url.protocol === 'https:' && next.protocol === 'http:') {
        throw new EgressError('redirect', 'redirects from https to http');
      }
      url = next;
    }
  }
}

function withoutCaller(headers: EgressRequest['headers']): Record<string, string> {
  return Object.fromEntries(Object.entries(headers ?? {}).filter(([name]) => !PERSONAL.test(name)));
}

/** One exchange on its own connection, closed afterwards: a checked address is used once. */
async function hop(
  url: URL,
  request: EgressRequest,
  signal: AbortSignal,
  open: () => ReturnType<typeof connect>,
): Promise<EgressReply> {
  const socket = await open();
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
  try {
    return await new Promise<EgressReply>((resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
      const gathered = new Gatherer(url, request, resolve, reject);
      client.dispatch(
        {
          path: url.pathname + url.search,
          method: request.method ?? 'GET',
          headers: { 'user-agent': 'gatehouse', ...request.headers, 'accept-encoding': 'identity' },
          body: request.body ?? null,
        },
        gathered,
      );
    });
  } finally {
    socket.destroy();
    void client.destroy().catch(() => {});
  }
}

/** Reads a response into memory, up to a limit. The body of a redirect is not read. */
class Gatherer implements Dispatcher.DispatchHandler {
  readonly #url: URL;
  readonly #maxBytes: number;
  readonly #headOnly: boolean;
  readonly #resolve: (reply: EgressReply) => void;
  readonly #reject: (error: Error) => void;
  readonly #chunks: Buffer[] = [];
  #head: { status: number; headers: Record<string, string> } = { status: 0, headers: {} };
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
    const kept: Record<string, string> = {};
    for (const [name, value] of Object.entries(headers)) {
      const first = Array.isArray(value) ? value[0] : value;
      if (first !== undefined) kept[name.toLowerCase()] = first;
    }
    this.#head = { status, headers: kept };
    if (this.#headOnly || REDIRECTS.has(status)) this.#done();
    else if (Number(kept['content-length']) > this.#maxBytes) this.#tooLarge();
    else if (!/^(?:identity)?$/i.test(kept['content-encoding'] ?? '')) {
      this.#reject(new EgressError('network', 'sent a compressed response, which is not supported'));
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

/** Errors of the library may contain addresses, so their texts are not passed on. */
function asFault(error: unknown): EgressError {
  return error instanceof EgressError ? error : new EgressError('network', 'could not be fetched');
}
