/** What the exchanges of one server have in common, and what ties them to their connections. */

import { type IncomingHttpHeaders, IncomingMessage, type OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { Clock } from '../base/clock.ts';
import type { GatewayError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { Roster } from '../base/roster.ts';
import type { TrustedProxies } from './forwarded.ts';
import type { HttpLimits } from './limits.ts';
import type { Access, FinishedExchange } from './operation.ts';
import type { Router } from './router.ts';

/** What all exchanges of a server share. */
export interface Core<C> {
  readonly router: Router<C>;
  readonly authenticate: (headers: IncomingHttpHeaders) => C | Promise<C>;
  readonly admit: (caller: C, access: Access) => void;
  readonly userId: (caller: C) => string | null | undefined;
  readonly observe: ((exchange: FinishedExchange<C>) => void) | undefined;
  readonly clock: Clock;
  readonly log: Log;
  readonly limits: Readonly<HttpLimits>;
  readonly proxies: () => TrustedProxies;
  /** Exchanges whose client owes bytes; they are looked at for lateness now and then. */
  readonly owing: { add(exchange: Late): number; delete(exchange: Late, seat: number): void };
  /** Unfinished exchanges and the bytes of their bodies. */
  exchanges: number;
  bodyBytes: number;
  draining: boolean;
}

/** Something that must not wait for ever. */
export interface Late {
  /** Called now and then with the clock's monotonic time. */
  checkLateness(nowMs: number): void;
}

/** A client's connection and what is unfinished on it. */
export class Connection {
  readonly open = new Roster<{ clientGone(): void; badBody(error: GatewayError): boolean }>();
}

/** Who reads a request's body. */
interface BodyReader {
  receive(chunk: Buffer): void;
  received(): void;
  finished(): void;
}

/**
 * node's request with a way back to its exchange, and without a stream in between: what the parser pushes goes straight to
 * the exchange once that reads, which saves a small request a tenth of what it costs. Until then it is kept here, and the
 * socket rests after the first chunk.
 */
export class GatewayRequest extends IncomingMessage {
  exchange: BodyReader | undefined = undefined;
  #reader: BodyReader | undefined = undefined;
  #kept: Buffer[] | undefined = undefined;
  /** All of the body has come. */
  ended = false;

  /** Lets the body flow into `reader`, what has come of it first of all. */
  readInto(reader: BodyReader): void {
    this.#reader = reader;
    const kept = this.#kept;
    this.#kept = undefined;
    for (const chunk of kept ?? []) reader.receive(chunk);
    if (this.ended) reader.received();
    // Lets the socket go on.
    else this._read(0);
  }

  /** Called by node's parser with each piece of the body, and with null behind the last. False: no more for now. */
  override push(chunk: Buffer | null): boolean {
    if (chunk === null) {
      this.ended = true;
      this.#reader?.received();
      // node lets go of a request that ends behind its answer.
      if (this.listenerCount('end') > 0) this.emit('end');
      return true;
    }
    if (this.#reader !== undefined) {
      this.#reader.receive(chunk);
      return true;
    }
    this.#kept ??= [];
    this.#kept.push(chunk);
    return false;
  }
}

// By this node tells a request that was read from one that was broken off. (Declared a property, which a class cannot override.)
Object.defineProperty(GatewayRequest.prototype, 'readableEnded', {
  get(this: GatewayRequest) {
    return this.ended;
  },
});

/** node's answer with headers that stand in every one of an exchange. They go out with the others, set once. */
export class GatewayResponse extends ServerResponse<GatewayRequest> {
  readonly common: Record<string, string> = {};

  override writeHead(status: number, headers?: OutgoingHttpHeaders): this;
  override writeHead(status: number, message: string): this;
  override writeHead(status: number, headers?: OutgoingHttpHeaders | string): this {
    if (typeof headers === 'string') throw new Error('the message of a status is the standard one');
    return super.writeHead(status, { ...this.common, ...headers });
  }
}
