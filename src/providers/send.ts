/**
 * One upstream exchange: connection pool, timeouts, abort, back-pressure. The only place besides the checked egress that
 * opens connections to upstreams.
 *
 * Never repeats a request of which a byte was handed to the kernel: nobody can know what the upstream did with it, and a
 * repeated generation costs money. Only a request that was still waiting for its kept connection when that connection
 * closed goes out on a new one. Whether a failed exchange is tried elsewhere is for `inference/call.ts` to decide.
 */
import type { EventEmitter } from 'node:events';
import net from 'node:net';
import tls from 'node:tls';
import Client from 'undici/lib/dispatcher/client.js';
import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { UpstreamFailure } from '../formats/conversation/failure.ts';
import { Exchange } from './exchange.ts';
import { failure } from './network-failure.ts';
import type { Timeouts } from './provider.ts';
import { openTunnel, type ProxyRoute, type ProxySettings, proxyFor } from './proxy.ts';

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
  /** How long an unused connection is kept when the upstream does not say. Default 30 s. */
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

const MAX_HEAD_BYTES = 64 * 1024;
const ENDED = new Error('the exchange was ended by the gateway');

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
    if (origin === undefined) {
      call.refuse('the address of the upstream is not an http or https URL');
    } else if (this.#closed) {
      call.refuse('the gateway is shutting down');
    } else {
      const connection = origin.take();
      if (connection === undefined) call.refuse('too many connections to the upstream are open');
      else call.start(connection, request.url.slice(slash));
    }
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

/** The connections to one scheme, host and port. */
class Origin {
  readonly url: URL;
  readonly options: TransportOptions;
  readonly trust: tls.SecureContext | undefined;
  readonly proxy: ProxyRoute | undefined;
  readonly connections = new Set<Connection>();
  /** Unused ones; the last used is taken first, so that the surplus ages and closes. */
  readonly idle: Connection[] = [];
  /** Lets later connections skip most of the TLS handshake. */
  session: Buffer | undefined;

  constructor(url: URL, options: TransportOptions, trust: tls.SecureContext | undefined) {
    this.url = url;
    this.options = options;
    this.trust = trust;
    this.proxy = proxyFor(url, options.proxy);
  }

  take(): Connection | undefined {
    const kept = this.idle.pop();
    if (kept !== undefined) return kept;
    if (this.connections.size >= (this.options.connectionsPerOrigin ?? 4096)) return undefined;
    const connection = new Connection(this);
    this.connections.add(connection);
    return connection;
  }
}

/**
 * One connection with at most one call at a time. A `Client` of its own for each connection, instead of the library's pool,
 * tells which call is on which socket: a call can be ended while it is connecting, and one that is paused can hold its
 * own socket.
 */
class Connection {
  readonly client: Client;
  call: Exchange | undefined;
  readonly #origin: Origin;
  #socket: net.Socket | undefined;
  #held = false;
  #discarded: Promise<void> | undefined;

  constructor(origin: Origin) {
    this.#origin = origin;
    this.client = new Client(origin.url, {
      connect: (_options, callback) => this.#connect(callback),
      pipelining: 1,
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: origin.options.keepAliveMs ?? 30_000,
      maxHeaderSize: MAX_HEAD_BYTES,
    });
    // With a call waiting the client connects anew by itself; without one the connection is over.
    this.client.on('disconnect', () => {
      if (this.call === undefined) void this.discard();
    });
    const events: EventEmitter = this.client;
    events.on('error', (cause: unknown) => origin.options.log.error('upstream connection fault', { cause }));
  }

  /** The call is complete and the connection may serve another one. */
  release(): void {
    this.call = undefined;
    this.hold(false);
    if (this.#discarded === undefined) this.#origin.idle.push(this);
  }

  /** Closes the socket at once, whatever it is doing. */
  discard(): Promise<void> {
    if (this.#discarded === undefined) {
      this.call = undefined;
      this.#origin.connections.delete(this);
      const at = this.#origin.idle.indexOf(this);
      if (at !== -1) this.#origin.idle.splice(at, 1);
      this.#discarded = this.client.destroy(ENDED);
      this.#socket?.destroy(ENDED);
    }
    return this.#discarded;
  }

  /**
   * While held, nothing is read, so the kernel's buffers fill and the upstream has to wait. The library's own pause is not
   * used: when the upstream closes a connection whose parser is paused, an assertion of undici 7 ends the process.
   */
  hold(held: boolean): void {
    if (this.#held === held) return;
    this.#held = held;
    // Not at once: this may be called from within the parser, which must not be entered twice.
    if (!held) process.nextTick(() => this.#readOn());
  }

  #readOn(): void {
    if (!this.#held) this.#socket?.emit('readable');
  }

  #connect(callback: (...result: [null, net.Socket] | [Error, null]) => void): void {
    const { url, proxy } = this.#origin;
    const to = target(url);
    const secure = url.protocol === 'https:';
    if (proxy === undefined) {
      this.#use(secure ? this.#openTls(to) : net.connect(to), callback);
      return;
    }
    const { host, port } = proxy;
    const socket = proxy.secure ? this.#secured({ host, port }) : net.connect({ host, port });
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.setKeepAlive(true, 60_000);
    let connected = false;
    // Stays: what breaks below a tunnel is told above it too.
    socket.on('error', (error: Error) => {
      if (!connected) callback(error, null);
      connected = true;
    });
    socket.once(proxy.secure ? 'secureConnect' : 'connect', () => {
      connected = true;
      openTunnel(socket, to, proxy.authorization, (error) => {
        if (error !== null) {
          socket.destroy();
          callback(error, null);
        } else if (secure) this.#use(this.#openTls({ ...to, socket }), callback);
        else this.#use(socket, callback, true);
      });
    });
  }

  /** Hands the socket over once it is connected, which a tunnel is already, and keeps an eye on it from then on. */
  #use(
    socket: net.Socket,
    callback: (...result: [null, net.Socket] | [Error, null]) => void,
    isConnected = false,
  ): void {
    this.#socket = socket;
    let connected = isConnected;
    socket.setNoDelay(true);
    socket.setKeepAlive(true, 60_000);
    const read = socket.read;
    // Not before the connection is there: a TLS handshake is read through here too, and nothing would begin it again.
    socket.read = (size?: number) => (this.#held && connected ? null : read.call(socket, size));
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (!connected) callback(error, null);
      // undici takes a reset for the end of an answer that lasts as long as its connection; under another name it does not.
      else if (error.code === 'ECONNRESET') error.code = 'CONNECTION_RESET';
      connected = true;
    });
    if (isConnected) callback(null, socket);
    else {
      socket.once(socket instanceof tls.TLSSocket ? 'secureConnect' : 'connect', () => {
        connected = true;
        callback(null, socket);
      });
    }
  }

  #openTls(to: Target): tls.TLSSocket {
    const { session } = this.#origin;
    const socket = this.#secured({ ...to, ...(session && { session }) });
    socket.on('session', (fresh: Buffer) => {
      this.#origin.session = fresh;
    });
    return socket;
  }

  #secured(to: Target & { session?: Buffer }): tls.TLSSocket {
    return tls.connect({
      ...to,
      ALPNProtocols: ['http/1.1'],
      ...(net.isIP(to.host) === 0 && { servername: to.host }),
      ...(this.#origin.trust && { secureContext: this.#origin.trust }),
    });
  }
}

interface Target {
  host: string;
  port: number;
  /** A connection that leads there already. */
  socket?: net.Socket;
}

function target(url: URL): { host: string; port: number } {
  const host = url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname;
  return { host, port: url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port) };
}
