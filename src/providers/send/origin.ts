/** The connections to one origin: which are kept, and which one carries a call. */
import type tls from 'node:tls';
import type { Clock, Timer } from '../../base/clock.ts';
import { Connection, type ConnectionOwner } from './connection.ts';
import type { Exchange } from './exchange.ts';
import { portOf } from './port.ts';
import { type ProxyRoute, proxyFor } from './proxy.ts';
import type { TransportOptions } from './transport.ts';

const MOST = 4096;
/** Below the 5 s after which uvicorn (vLLM), Node.js and others close unused connections without a hint. */
const KEPT_MS = 4_000;

/** One scheme, host and port. */
export class Origin implements ConnectionOwner {
  readonly clock: Clock;
  /** Value of the `Host` header. */
  readonly host: string;
  readonly isSecure: boolean;
  readonly target: { host: string; port: number };
  readonly trust: tls.SecureContext | undefined;
  readonly proxy: ProxyRoute | undefined;
  readonly keepAliveMs: number;
  readonly connections = new Set<Connection>();
  /** TLS session, which lets later connections skip most of the handshake. */
  session: Buffer | undefined;
  readonly #most: number;
  /** Idle connections. The most recently used is taken first, so that surplus ones age and close. */
  readonly #idle: Connection[] = [];
  /** Connections whose response ended in this turn of the event loop, and in the previous one. */
  #answered: Connection[] = [];
  #settling: Connection[] = [];
  #sweep: Timer | undefined;
  #sweepsAt = Number.POSITIVE_INFINITY;

  constructor(url: URL, options: TransportOptions, trust: tls.SecureContext | undefined) {
    this.clock = options.clock;
    this.host = url.host;
    this.isSecure = url.protocol === 'https:';
    this.target = {
      host: url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname,
      port: portOf(url),
    };
    this.trust = trust;
    this.proxy = proxyFor(url, options.proxy);
    this.keepAliveMs = options.keepAliveMs ?? KEPT_MS;
    this.#most = options.connectionsPerOrigin ?? MOST;
  }

  /** Gives `call` a kept connection or a new one. */
  carry(call: Exchange): void {
    const kept = this.#takeIdle() ?? this.#answered.findLast(isUnused) ?? this.#settling.findLast(isUnused);
    if (kept !== undefined) {
      kept.carry(call);
      return;
    }
    this.carryOnNew(call);
  }

  carryOnNew(call: Exchange): void {
    if (this.connections.size >= this.#most) {
      call.refuse('too many connections to the upstream are open');
      return;
    }
    const connection = new Connection(this);
    this.connections.add(connection);
    connection.carry(call);
  }

  /** Keeps `connection`, whose response has just ended. Calls `mayBeUsed` once it may be used. */
  keep(connection: Connection): void {
    if (this.#answered.push(connection) === 1 && this.#settling.length === 0) setImmediate(this.#turned);
    if (connection.expiresAt < this.#sweepsAt) this.#sweepAt(connection.expiresAt);
  }

  forget(connection: Connection): void {
    this.connections.delete(connection);
    const at = this.#idle.indexOf(connection);
    if (at !== -1) this.#idle.splice(at, 1);
    if (this.connections.size > 0) return;
    this.#sweep?.cancel();
    this.#sweepsAt = Number.POSITIVE_INFINITY;
  }

  #takeIdle(): Connection | undefined {
    const now = this.clock.monotonic();
    for (;;) {
      const connection = this.#idle.pop();
      if (connection === undefined || (connection.isOpen && now < connection.expiresAt)) return connection;
      void connection.discard();
    }
  }

  /** Between two runs of this function, the event loop has read everything that had arrived on any connection. */
  readonly #turned = (): void => {
    const usable = this.#settling;
    this.#settling = this.#answered;
    this.#answered = [];
    if (this.#settling.length > 0) setImmediate(this.#turned);
    for (const connection of usable) {
      if (isUnused(connection)) this.#idle.push(connection);
      connection.mayBeUsed();
    }
  };

  #sweepAt(at: number): void {
    this.#sweep?.cancel();
    this.#sweepsAt = at;
    this.#sweep = this.clock.timer(Math.ceil(Math.max(0, at - this.clock.monotonic())), () => {
      this.#sweepsAt = Number.POSITIVE_INFINITY;
      const now = this.clock.monotonic();
      for (const connection of this.#idle.filter(({ expiresAt }) => expiresAt <= now)) void connection.discard();
      if (this.connections.size === 0) return;
      this.#sweepAt(Math.min(now + this.keepAliveMs, ...this.#idle.map(({ expiresAt }) => expiresAt)));
    });
  }
}

function isUnused(connection: Connection): boolean {
  return connection.isOpen && connection.call === undefined;
}
