/**
 * HTTP calls to upstreams. Apart from the checked egress, only this folder opens outbound connections: `exchange` runs
 * one call, `origin` manages the connections to one origin, `connection` is one of them, `http/answer-parser` and `unpack`
 * read what arrives on it, and `proxy` opens tunnels.
 *
 * A request is sent twice in only two cases: it was waiting for a kept connection that closed, so no byte had been
 * sent; or the upstream closed a kept connection without sending a byte, once (decision 010). Any other repetition
 * could pay for a generation twice. `inference/turns/verdict.ts` decides whether a failed exchange is tried elsewhere.
 */
import tls from 'node:tls';
import { Exchange } from './exchange.ts';
import { failure } from './network-failure.ts';
import { Origin } from './origin.ts';
import type { Transport, TransportOptions, UpstreamCall, UpstreamReceiver, UpstreamRequest } from './transport.ts';

export type {
  StreamedBody,
  Timeouts,
  Transport,
  TransportOptions,
  UpstreamCall,
  UpstreamReceiver,
  UpstreamRequest,
} from './transport.ts';

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
    // Created once, because reading the system's authorities takes longer than a handshake.
    if (ca !== undefined) this.#trust = tls.createSecureContext({ ca });
    else if (extraCa !== undefined) {
      this.#trust = tls.createSecureContext({ ca: [...tls.getCACertificates('default'), extraCa] });
    }
  }

  send(request: UpstreamRequest, receiver: UpstreamReceiver): UpstreamCall {
    const call = new Exchange(this.options, request, receiver);
    const slash = request.url.indexOf('/', request.url.indexOf('://') + 3);
    const origin = slash === -1 ? undefined : this.#origin(request.url.slice(0, slash));
    if (origin === undefined) call.refuse('the upstream URL is not an http or https URL');
    else if (this.#closed) call.refuse('the gateway is shutting down');
    else if (call.prepare(origin.host, request.url.slice(slash))) origin.carry(call);
    else call.refuse('the request cannot be sent: its URL or a header is not valid HTTP');
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
