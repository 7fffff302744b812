/**
 * Calls to upstreams. With what lies in `send/` the only place besides the checked egress that opens connections to the
 * outside: the course of one call (`exchange`), the connections to one origin (`origin`), one of them (`connection`), what
 * comes on it (`answer-parser`, `unpack`), the way through a proxy.
 *
 * A request goes out twice in two cases only: it was waiting for a kept connection when that closed, so no byte had left;
 * or the upstream closed the kept connection without a byte of an answer, once (decision 010). Any other repetition could
 * pay for a generation twice. Whether a failed exchange is tried elsewhere is for `inference/call.ts` to decide.
 */
import tls from 'node:tls';
import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { UpstreamFailure } from '../formats/conversation/failure.ts';
import type { Timeouts } from './provider.ts';
import { Exchange } from './send/exchange.ts';
import { failure } from './send/network-failure.ts';
import { Origin } from './send/origin.ts';
import type { ProxySettings } from './send/proxy.ts';

export interface UpstreamRequest {
  /** Absolute URL. */
  url: string;
  /** Default POST; a GET has no body. */
  method?: 'GET';
  headers: Record<string, string>;
  body: Buffer | string;
  timeouts: Timeouts;
}

/** Called in order: `head` once, `data` any number of times, then exactly one of `end` and `failed`. `failed` may be the only call. */
export interface UpstreamReceiver {
  /** Header names are lower case; only those that `exchange.ts` lists. A redirect is an answer like any other. */
  head(status: number, headers: Record<string, string>): void;
  /** Unpacked, so `content-encoding` is not among the headers. The chunk may be kept. */
  data(chunk: Buffer): void;
  end(): void;
  /** refused, timeout, cut or malformed; `sent` tells whether the request may have reached the upstream. */
  failed(failure: UpstreamFailure, sent: boolean): void;
}

export interface UpstreamCall {
  /**
   * Stop and resume the flow of `data`; idempotent. What was read already (at most 64 KiB) may still follow a pause. The
   * idle timeout stands still meanwhile, the total one does not.
   */
  pause(): void;
  resume(): void;
  /** Ends the exchange and its connection at once; the receiver is not called again. Idempotent. */
  abort(): void;
}

export interface Transport {
  /** Never calls the receiver before it has returned. */
  send(request: UpstreamRequest, receiver: UpstreamReceiver): UpstreamCall;
  /** Ends every exchange (its receiver gets `cut`) and every connection. */
  close(): Promise<void>;
}

export interface TransportOptions {
  clock: Clock;
  log: Log;
  /** Calls beyond this many to one origin at once are refused; the callers' own limits should be lower. Default 4096. */
  connectionsPerOrigin?: number;
  /** How long an unused connection is kept when the upstream does not say. Default 4 s. */
  keepAliveMs?: number;
  /** Certificate authorities in PEM form that are trusted instead of the usual ones. */
  ca?: string;
  /** The same, beside the usual ones. */
  extraCa?: string;
  proxy?: ProxySettings;
}

/** The transport over TCP and TLS. */
export function createTransport(options: TransportOptions): Transport {
  return new NetworkTransport(options);
}

class NetworkTransport implements Transport {
  readonly options: TransportOptions;
  readonly #origins = new Map<string, Origin>();
  readonly #trust: tls.SecureContext | undefined;
  #closed = false;

  constructor(options: TransportOptions) {
    this.options = options;
    const { ca, extraCa } = options;
    // Made once: reading the usual authorities takes longer than a handshake.
    if (ca !== undefined) this.#trust = tls.createSecureContext({ ca });
    else if (extraCa !== undefined) {
      this.#trust = tls.createSecureContext({ ca: [...tls.getCACertificates('default'), extraCa] });
    }
  }

  send(request: UpstreamRequest, receiver: UpstreamReceiver): UpstreamCall {
    const call = new Exchange(this.options, request, receiver);
    const slash = request.url.indexOf('/', request.url.indexOf('://') + 3);
    const origin = slash === -1 ? undefined : this.#origin(request.url.slice(0, slash));
    if (origin === undefined) call.refuse('the address of the upstream is not an http or https URL');
    else if (this.#closed) call.refuse('the gateway is shutting down');
    else if (call.prepare(origin.host, request.url.slice(slash))) origin.carry(call);
    else call.refuse('the request cannot be sent: its address or a header is not valid HTTP');
    call.returned();
    return call;
  }

  async close(): Promise<void> {
    this.#closed = true;
    const closing: Promise<void>[] = [];
    for (const origin of this.#origins.values()) {
      for (const connection of origin.connections) {
        connection.call?.fail(failure('cut', 'the gateway is shutting down', null));
        closing.push(connection.discard());
      }
    }
    await Promise.all(closing);
  }

  /** Providers come from the configuration, so this map stays small. */
  #origin(text: string): Origin | undefined {
    let origin = this.#origins.get(text);
    if (origin === undefined) {
      const url = URL.parse(text);
      const known = url !== null && (url.protocol === 'http:' || url.protocol === 'https:');
      if (!known || url.username !== '' || url.password !== '') return undefined;
      origin = new Origin(url, this.options, this.#trust);
      this.#origins.set(text, origin);
    }
    return origin;
  }
}
