/**
 * The proxy in place of one host with bound secrets: it presents a certificate of the sandbox's authority, and sends on what it
 * reads over a connection to the host that it has verified. A client gets the version of HTTP that it chose among those
 * that the host offers, and the host is spoken to in the same one.
 */
import type http from 'node:http';
import http2, { Http2ServerRequest } from 'node:http2';
import https from 'node:https';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { GatewayRequest } from '../../http/message.ts';
import type { Destination } from '../destination.ts';
import { asRefusal, Refusal } from '../refusal.ts';
import { Release, type SecretTexts } from '../text/release.ts';
import type { Leaf, LeafIssuer } from '../trust/leaf-issuer.ts';
import { IDLE_MS, MOST_HEAD_BYTES, type ProxyContext, type Report } from './context.ts';
import { checkPath, exchange } from './exchange.ts';
import { checkAuthority, headerOf, type Pair, pairsOf } from './heads.ts';
import { refuse, refuseOn, type ServerRequest, type ServerResponse } from './respond.ts';
import { sendHttp2 } from './send.ts';
import { sendHttp1 } from './send-http1.ts';
import { upgrade } from './upgrade.ts';
import { Upstream } from './upstream.ts';

const HANDSHAKE_MS = 15_000;
const KEEP_ALIVE_MS = 60_000;
const MOST_STREAMS = 128;

interface Interception {
  destination: Destination;
  context: ProxyContext;
  /** The secrets of the sandbox, which may change. */
  texts(): SecretTexts;
  report: Report;
}

export class InterceptedHost {
  readonly #parts: Interception;
  readonly #upstream: Upstream;
  readonly #leaf: Leaf;
  readonly #servers = new Map<boolean, https.Server | http2.Http2SecureServer>();
  #release: Release | undefined;

  constructor(parts: Interception, issuer: LeafIssuer) {
    this.#parts = parts;
    this.#leaf = issuer.issue(parts.destination.host);
    this.#upstream = new Upstream(parts.destination, parts.context);
  }

  /** When its certificate expires: wall time in milliseconds. */
  get expiresAt(): number {
    return this.#leaf.expiresAt;
  }

  /** @returns whether the host offers HTTP/2 @throws Refusal if it does not prove its name */
  verify(): Promise<boolean> {
    return this.#upstream.offersHttp2();
  }

  /** Takes over a connection of the sandbox. To be called after `verify`. @param offersHttp2 what it returned */
  accept(client: Duplex, offersHttp2: boolean): void {
    let server = this.#servers.get(offersHttp2);
    if (server === undefined) {
      server = this.#createServer(offersHttp2);
      this.#servers.set(offersHttp2, server);
    }
    // The socket comes from a server of HTTP/1.1, which allows it; a session of HTTP/2 would not notice that its client left.
    client.allowHalfOpen = false;
    server.emit('connection', client);
  }

  close(): void {
    this.#upstream.close();
  }

  /** It never listens: connections are handed to it. */
  #createServer(offersHttp2: boolean): https.Server | http2.Http2SecureServer {
    const options = {
      key: this.#leaf.key,
      cert: this.#leaf.certificate,
      minVersion: 'TLSv1.2' as const,
      handshakeTimeout: HANDSHAKE_MS,
      maxHeaderSize: MOST_HEAD_BYTES,
    };
    const settings = { maxConcurrentStreams: MOST_STREAMS, maxHeaderListSize: MOST_HEAD_BYTES };
    const server = offersHttp2
      ? http2.createSecureServer({
          ...{ ...options, allowHTTP1: true, settings, Http1IncomingMessage: GatewayRequest },
          // Hosts repeat such headers, and Node throws where nothing can catch it.
          strictSingleValueFields: false,
        })
      : https.createServer({ ...options, IncomingMessage: GatewayRequest });
    if ('keepAliveTimeout' in server) server.keepAliveTimeout = KEEP_ALIVE_MS;
    // Servers of both kinds read it for each connection.
    (server as https.Server).timeout = IDLE_MS;
    const events = server as https.Server;
    events.on('request', (request, response) => void this.#serve(request, response));
    events.on('upgrade', (request, socket, first) => void this.#upgrade(request, socket, first));
    events.on('connect', (request: ServerRequest, end: Duplex | ServerResponse) => {
      const refusal = new Refusal('bad_request', 'There is no CONNECT inside of a tunnel.');
      if (request instanceof Http2ServerRequest) refuse(refusal, request, end as ServerResponse);
      else refuseOn(end as Duplex, refusal);
    });
    events.on('clientError', refuseUnreadable);
    events.on('tlsClientError', () => {});
    (server as http2.Http2SecureServer).on('sessionError', () => {});
    return server;
  }

  async #serve(request: ServerRequest, response: ServerResponse): Promise<void> {
    const { destination, context } = this.#parts;
    request.on('error', () => {});
    response.on('error', () => {});
    try {
      const pairs = this.#check(request, tlsOf(request));
      const path = request.url ?? '';
      checkPath(path, request.method);
      const passage = {
        ...{ destination, release: this.#currentRelease(), allowance: context.bodies },
        send: (outgoing: Parameters<typeof sendHttp1>[0]) =>
          request instanceof Http2ServerRequest
            ? sendHttp2(outgoing, this.#upstream, request.headers['trailer'] !== undefined)
            : sendHttp1(outgoing, this.#upstream.connections),
      };
      await exchange(passage, { path, pairs }, request, response);
    } catch (error) {
      const refusal = asRefusal(error, destination.host);
      if (!response.destroyed || refusal.secret !== undefined) this.#parts.report(refusal, destination);
      refuse(refusal, request, response);
    }
  }

  async #upgrade(request: http.IncomingMessage, client: Duplex, first: Buffer): Promise<void> {
    const { destination, context, report } = this.#parts;
    client.on('error', () => {});
    try {
      this.#check(request, client as TLSSocket);
      checkPath(request.url ?? '', request.method);
      const parts = {
        destination,
        report,
        open: () => this.#upstream.open(),
        allowance: context.bodies,
        clock: context.clock,
      };
      await upgrade({ ...parts, release: this.#currentRelease() }, request, client, first);
    } catch (error) {
      const refusal = asRefusal(error, destination.host);
      report(refusal, destination);
      refuseOn(client, refusal);
    }
  }

  /** The name of the TLS handshake and of the request must be those of the tunnel. @returns the headers @throws Refusal */
  #check(request: ServerRequest, socket: TLSSocket): readonly Pair[] {
    const { destination } = this.#parts;
    const { servername: name } = socket;
    if (typeof name === 'string' && name.toLowerCase().replace(/\.$/, '') !== destination.host) {
      throw new Refusal(
        'misdirected',
        `This connection leads to ${destination.host}, but TLS was asked for another host.`,
      );
    }
    const pairs = pairsOf(request.rawHeaders);
    checkAuthority(pairs, destination, 443);
    const isHttp1 = !(request instanceof Http2ServerRequest);
    if (
      isHttp1 &&
      headerOf(pairs, 'transfer-encoding') !== undefined &&
      headerOf(pairs, 'content-length') !== undefined
    ) {
      throw new Refusal('bad_request', 'The request has two lengths.');
    }
    return pairs;
  }

  #currentRelease(): Release {
    const texts = this.#parts.texts();
    if (this.#release?.texts !== texts) this.#release = new Release(texts, this.#parts.destination.host, true);
    return this.#release;
  }
}

/** The socket of an HTTP/2 request allows only some uses, so it is asked for through its session. */
function tlsOf(request: ServerRequest): TLSSocket {
  const socket = request instanceof Http2ServerRequest ? request.stream.session?.socket : request.socket;
  return socket as TLSSocket;
}

/** Of a parser that could not read a request which has arrived, or of one that arrives too slowly. */
const ANSWERED = /^(?:HPE_(?!INVALID_EOF_STATE$)|ERR_HTTP_)/;

/** Answers what is not HTTP. A connection that broke, or on which TLS did not begin, ends: a response could wait in it for ever. */
export function refuseUnreadable(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (ANSWERED.test(error.code ?? '')) refuseOn(socket, unreadable(error));
  else socket.destroy();
}

/** What a parser says may contain parts of the request, so only its code is shown. */
function unreadable(error: NodeJS.ErrnoException): Refusal {
  const code = /^(?:HPE|ERR)_\w+$/.test(error.code ?? '') ? ` (${error.code})` : '';
  if (error.code === 'HPE_HEADER_OVERFLOW') {
    return new Refusal('too_large', `The headers are larger than ${MOST_HEAD_BYTES} bytes.`);
  }
  return new Refusal('bad_request', `The request is not valid HTTP/1.1${code}.`);
}
