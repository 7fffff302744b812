/**
 * HTTP server for operations given as data: see `createHttpServer`. Knows no concrete operation. `router` finds the
 * operation, `exchange` serves one request, `validate` checks its input, `limits` bounds everything.
 */
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Clock, Timer } from '../base/clock.ts';
import type { EndOfTurn } from '../base/end-of-turn.ts';
import { GatewayError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { SlotList } from '../base/slot-list.ts';
import type { AccessRule } from './access-rule.ts';
import { Connection, type Core, type HasTimeout } from './core.ts';
import { ServerExchange } from './exchange.ts';
import { TrustedProxies } from './forwarded.ts';
import { DEFAULT_LIMITS, type HttpLimits } from './limits.ts';
import { GatewayRequest, GatewayResponse } from './message.ts';
import type { Exchange, FinishedExchange, Operation, UnservedPaths } from './operation.ts';
import { answerParserError, parserError } from './parser-error.ts';
import { credentialHeaders } from './query-key.ts';
import { API_PREFIXES, Router } from './router.ts';

export interface HttpServerOptions<C> {
  operations: readonly Operation<C>[];
  /**
   * Identifies the caller from the headers. Throws (or rejects with) GatewayError 401, 403 or 503. Sync if possible.
   */
  authenticate: (headers: IncomingHttpHeaders, operation: Operation<C>) => C | Promise<C>;
  /**
   * Throws GatewayError 403 or 404 if the operation's access rule excludes the request. The caller is undefined if the
   * operation is open to the request. Default: never throws.
   */
  permit?: (request: Exchange<C>, rule: AccessRule) => void;
  /** `user_id` of error envelopes; undefined omits it. */
  userId?: (caller: C) => string | null | undefined;
  /** Called once for each finished exchange. */
  observe?: (exchange: FinishedExchange<C>) => void;
  /** First segments below `/api/v1` of unsupported resources: a 404 there has no metadata. */
  unsupported?: readonly string[];
  /** Are 404, also where an operation has the path. Default: none. */
  unserved?: UnservedPaths;
  clock: Clock;
  log: Log;
  limits?: Partial<HttpLimits>;
  /** Proxies whose `X-Forwarded-*` headers are trusted; default none. */
  proxies?: () => TrustedProxies;
  /** Schedules the handling of requests whose body is complete. Default: at once. */
  endOfTurn?: EndOfTurn;
  /** PEM texts; if set, the server speaks TLS. */
  tls?: { cert: string | Buffer; key: string | Buffer };
}

export interface HttpServer {
  /** Resolves once connections are accepted; port 0 takes any free port. */
  listen(port: number, host: string): Promise<AddressInfo>;
  /** True from `listen` until `drain`. */
  readonly ready: boolean;
  /** Unfinished exchanges. */
  readonly exchanges: number;
  /**
   * Stops accepting connections, lets open exchanges end for at most `ms`, then cuts the rest. Resolves when the last
   * connection is closed. Requests that arrive on open connections are still served, and their connection is closed.
   */
  drain(ms: number): Promise<void>;
}

/** Serves `operations` under `/api/v1` and `/v1`, and those with `root` at the root. */
export function createHttpServer<C>(options: HttpServerOptions<C>): HttpServer {
  return new OperationServer(options);
}

/** Sweeps per timeout, relative to the shortest limit. */
const SWEEPS_PER_LIMIT = 4;
const MAX_SWEEP_MS = 1_000;
/** Added to the announced keep-alive time, so that a request sent at the last moment is still served. */
const IDLE_SLACK_MS = 1_000;
const NO_PROXIES = new TrustedProxies([]);

class OperationServer<C> implements HttpServer {
  readonly #core: Core<C>;
  readonly #server: NodeServer;
  readonly #connections = new Map<Socket, Connection>();
  /** The TCP sockets below TLS, from before the handshake. */
  readonly #rawSockets = new Set<Socket>();
  #listening = false;

  constructor(options: HttpServerOptions<C>) {
    const limits = { ...DEFAULT_LIMITS, ...options.limits };
    this.#core = {
      router: new Router(options.operations, options.unserved),
      authenticate: (headers, operation, search) =>
        options.authenticate(credentialHeaders(headers, operation, search), operation),
      permit: options.permit ?? (() => {}),
      userId: options.userId ?? (() => undefined),
      observe: options.observe,
      unsupported: pathsBelow(options.unsupported ?? []),
      clock: options.clock,
      log: options.log,
      limits,
      proxies: options.proxies ?? (() => NO_PROXIES),
      endOfTurn: options.endOfTurn ?? ((run) => run()),
      receiving: new Sweeper(options.clock, Math.min(limits.bodyMs, limits.lingerMs)),
      idle: new Sweeper(options.clock, limits.keepAliveMs),
      idleSweeps: Math.ceil((limits.keepAliveMs + IDLE_SLACK_MS) / sweepMs(limits.keepAliveMs)),
      exchanges: 0,
      bodyBytes: 0,
      draining: false,
    };
    this.#server = createNodeServer(limits, options.tls);
    this.#server.maxConnections = limits.connections;
    // Not in its types. `Connection` decides about clients that have closed their side.
    Object.assign(this.#server, { httpAllowHalfOpen: true });
    this.#server.on(options.tls ? 'secureConnection' : 'connection', (socket) => this.#connected(socket));
    if (options.tls) this.#server.on('connection', (socket) => this.#accepted(socket));
    this.#server.on('request', (request, response) => this.#exchange(request, response)?.begin());
    this.#server.on('checkContinue', (request, response) => this.#exchange(request, response)?.begin('continue'));
    this.#server.on('checkExpectation', (request, response) => this.#exchange(request, response)?.begin('unknown'));
    this.#server.on('connect', (_request, socket) => this.#refuseTunnel(socket));
    this.#server.on('clientError', (error, socket) => this.#clientError(error, socket));
  }

  get ready(): boolean {
    return this.#listening && !this.#core.draining;
  }

  get exchanges(): number {
    return this.#core.exchanges;
  }

  listen(port: number, host: string): Promise<AddressInfo> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen({ port, host, backlog: 1024 }, () => {
        this.#server.off('error', reject);
        // Later errors (out of file descriptors) concern one connection, not the server.
        this.#server.on('error', (error) => this.#core.log.error('server error', { error }));
        this.#listening = true;
        resolve(this.#server.address() as AddressInfo);
      });
    });
  }

  async drain(ms: number): Promise<void> {
    this.#core.draining = true;
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    // http.Server's own close would destroy connections whose last response is written but not sent yet.
    NetServer.prototype.close.call(this.#server, () => resolve());
    for (const [socket, connection] of this.#connections) if (connection.open.size === 0) socket.destroySoon();
    const cut = this.#core.clock.timer(ms, () => {
      this.#core.log.warn('drain cut connections', { connections: this.#connections.size });
      for (const socket of [...this.#connections.keys(), ...this.#rawSockets]) socket.destroy();
    });
    await closed;
    cut.cancel();
    // Stops the timers of http.Server itself (its check of slow headers).
    this.#server.close(() => {});
  }

  #connected(socket: Socket): void {
    const connection = new Connection(socket, this.#core);
    this.#connections.set(socket, connection);
    // After Node's own listener, which reports a request that has not arrived completely as an error.
    socket.on('end', () => connection.clientEnded());
    socket.on('close', () => {
      this.#connections.delete(socket);
      connection.closed();
    });
  }

  #accepted(socket: Socket): void {
    this.#rawSockets.add(socket);
    socket.on('close', () => this.#rawSockets.delete(socket));
  }

  /** Undefined: the connection is cut. */
  #exchange(request: GatewayRequest, response: GatewayResponse): ServerExchange<C> | undefined {
    const connection = this.#connections.get(request.socket) ?? new Connection(request.socket, this.#core);
    // Responses wait for those before them, so one slow request could make others hold all exchanges of the server.
    if (connection.open.size < this.#core.limits.exchangesPerConnection)
      return new ServerExchange(this.#core, connection, request, response);
    request.socket.destroy();
    return undefined;
  }

  /** Otherwise Node closes the connection without a response. */
  #refuseTunnel(socket: Duplex): void {
    socket.on('error', () => {});
    const error = new GatewayError('invalid_request', 'this is not a proxy, so there is no method CONNECT');
    if (this.#connections.get(socket as Socket)?.open.size === 0)
      answerParserError(error, socket as Socket, this.#core.clock.now());
    else socket.destroy();
  }

  #clientError(error: Error, socket: Duplex): void {
    const refusal: GatewayError | undefined = parserError(error);
    const connection = this.#connections.get(socket as Socket);
    if (connection?.linger !== undefined && !socket.writable) {
      connection.linger.received((error as { rawPacket?: Buffer }).rawPacket?.length ?? 0);
      return;
    }
    if (!refusal || !socket.writable) {
      socket.destroy();
      return;
    }
    if (!connection || connection.open.size === 0) {
      // Further bytes of the client arrive here too, since the parser keeps rejecting them.
      connection?.lingers();
      answerParserError(refusal, socket as Socket, this.#core.clock.now());
      return;
    }
    const [first] = connection.open;
    if (connection.open.size > 1 || !first?.badBody(refusal)) socket.destroy();
  }
}

/** Matches paths whose first segment below `/api/v1` is one of these. */
function pathsBelow(segments: readonly string[]): RegExp {
  return segments.length === 0 ? /(?!)/ : new RegExp(`^(?:${API_PREFIXES.join('|')})/(?:${segments.join('|')})(?:/|$)`);
}

type NodeServer = Server<typeof GatewayRequest, typeof GatewayResponse>;

function createNodeServer(limits: HttpLimits, tls: HttpServerOptions<unknown>['tls']): NodeServer {
  const options = {
    IncomingMessage: GatewayRequest,
    ServerResponse: GatewayResponse,
    maxHeaderSize: limits.headerBytes,
    headersTimeout: limits.headerMs,
    connectionsCheckingInterval: Math.ceil(sweepMs(limits.headerMs)),
    // Bodies have a limit of their own, which gives long ones more time; Node's limit does not.
    requestTimeout: 0,
    // Idle connections are closed by `Connection`.
    keepAliveTimeout: 0,
    noDelay: true,
    // The exchange refuses a missing host, with an error envelope.
    requireHostHeader: false,
  };
  return tls ? createTlsServer({ ...options, handshakeTimeout: limits.headerMs, ...tls }) : createServer(options);
}

function sweepMs(shortestMs: number): number {
  return Math.min(MAX_SWEEP_MS, shortestMs / SWEEPS_PER_LIMIT);
}

/** Checks its members for timeouts regularly; runs a timer only while it has any. */
class Sweeper {
  readonly #members = new SlotList<HasTimeout>();
  readonly #clock: Clock;
  readonly #everyMs: number;
  #timer: Timer | undefined = undefined;
  #armed = false;

  constructor(clock: Clock, shortestMs: number) {
    this.#clock = clock;
    this.#everyMs = sweepMs(shortestMs);
  }

  add(member: HasTimeout): number {
    if (!this.#armed) this.#arm();
    return this.#members.add(member);
  }

  delete(member: HasTimeout, slot: number): void {
    this.#members.delete(member, slot);
  }

  #arm(): void {
    this.#armed = true;
    if (this.#timer) this.#timer.refresh();
    else this.#timer = this.#clock.timer(this.#everyMs, () => this.#sweep());
  }

  #sweep(): void {
    this.#armed = false;
    const now = this.#clock.monotonic();
    for (const member of this.#members) member.checkTimeout(now);
    if (this.#members.size > 0) this.#arm();
  }
}
