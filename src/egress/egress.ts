/** One fetch: each redirect is checked again, under one deadline and one size limit. */
import type { Clock } from '../base/clock.ts';
import type { EgressSettings } from '../base/config.ts';
import { checkAddress, connect, type Dialling, NETWORK } from './dial.ts';
import { hop, REDIRECTS, streamed } from './exchange.ts';
import { EgressError } from './fault.ts';
import { EgressRules } from './rules.ts';
import type { EgressStream } from './streamed.ts';

export interface EgressRequest {
  /** As the user gave it. */
  url: string;
  /** Default GET. Redirects are followed for GET only. */
  method?: 'GET' | 'POST' | 'PUT' | 'DELETE';
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
  /**
   * Resolves with the head of the response, whose body is read as it arrives. Redirects are returned. The time limit holds
   * until the end of the body.
   * @throws EgressError; a response with an error status does not throw
   */
  open(request: Omit<EgressRequest, 'redirects' | 'headOnly'>): Promise<EgressStream>;
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
/** Concurrent fetches of one process; each holds a socket and memory up to its limit. */
const MOST_AT_ONCE = 64;
const MOST_WAITING = 512;
/** Streams that are open at once in one process. They may last, so fetches do not wait for them. */
const MOST_STREAMS = 256;
/** Headers that identify the caller, so they are sent to the first host only. */
const PERSONAL = /^(?:authorization|proxy-authorization|cookie|x-api-key|x-key)$/i;

class CheckedEgress implements Egress {
  readonly #options: EgressOptions;
  readonly #running = new Set<AbortController>();
  readonly #waiting: (() => void)[] = [];
  #atOnce = 0;
  #streams = 0;
  #rules: { of: EgressSettings; rules: EgressRules } | undefined;
  #closed = false;

  constructor(options: EgressOptions) {
    this.#options = options;
  }

  async request(request: EgressRequest): Promise<EgressReply> {
    const rules = this.#currentRules();
    const first = rules.url(request.url);
    const { signal, end } = this.#begin(request);
    try {
      return await this.#inTurn(signal, () => this.#follow(first, request, rules, signal));
    } catch (error) {
      throw signal.aborted ? signal.reason : asFault(error);
    } finally {
      end();
    }
  }

  async open(request: Parameters<Egress['open']>[0]): Promise<EgressStream> {
    const rules = this.#currentRules();
    const url = rules.url(request.url);
    if (this.#streams >= MOST_STREAMS) throw new EgressError('busy', 'was not fetched: too many streams are open');
    const { signal, end } = this.#begin(request);
    this.#streams += 1;
    const over = () => {
      this.#streams -= 1;
      end();
    };
    try {
      return await streamed(url, request, signal, () => this.#connect(url, request, rules, signal), over);
    } catch (error) {
      throw signal.aborted ? signal.reason : asFault(error);
    }
  }

  /** The time limit of a fetch, and its registration for `close`. */
  #begin({ timeoutMs, signal }: Pick<EgressRequest, 'timeoutMs' | 'signal'>): { signal: AbortSignal; end(): void } {
    if (this.#closed) throw new EgressError('cancelled', 'was not fetched: the gateway is shutting down');
    const controller = new AbortController();
    const stop = (fault: 'time' | 'cancelled', message: string) => controller.abort(new EgressError(fault, message));
    const cancel = () => stop('cancelled', 'was cancelled');
    const timer = this.#options.clock.timer(timeoutMs, () =>
      stop('time', `could not be fetched within ${timeoutMs} ms`),
    );
    signal?.addEventListener('abort', cancel);
    if (signal?.aborted) cancel();
    this.#running.add(controller);
    const end = () => {
      timer.cancel();
      signal?.removeEventListener('abort', cancel);
      this.#running.delete(controller);
    };
    return { signal: controller.signal, end };
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
        this.#connect(url, request, rules, signal),
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

  #connect(url: URL, { tlsOnly = false }: EgressRequest, rules: EgressRules, signal: AbortSignal) {
    return connect(url, rules, { ...(this.#options.dialling ?? NETWORK), tlsOnly }, signal);
  }
}

function withoutCaller(headers: EgressRequest['headers']): Record<string, string> {
  return Object.fromEntries(Object.entries(headers ?? {}).filter(([name]) => !PERSONAL.test(name)));
}

/** Errors of the library may contain addresses, so their texts are not passed on. */
function asFault(error: unknown): EgressError {
  return error instanceof EgressError ? error : new EgressError('network', 'could not be fetched');
}
