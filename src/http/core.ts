/** State shared by all exchanges of a server, and the connections that they run on. */

import type { IncomingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../base/clock.ts';
import type { EndOfTurn } from '../base/end-of-turn.ts';
import type { GatewayError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { SlotList } from '../base/slot-list.ts';
import type { AccessRule } from './access-rule.ts';
import type { TrustedProxies } from './forwarded.ts';
import type { HttpLimits } from './limits.ts';
import { Linger } from './linger.ts';
import type { Exchange, FinishedExchange, Operation } from './operation.ts';
import type { Router } from './router.ts';

/** State shared by all exchanges of a server. */
export interface Core<C> {
  readonly router: Router<C>;
  /** The operation is known by then. */
  /** @param search the text after the question mark */
  readonly authenticate: (headers: IncomingHttpHeaders, operation: Operation<C>, search: string) => C | Promise<C>;
  readonly permit: (request: Exchange<C>, rule: AccessRule) => void;
  readonly userId: (caller: C) => string | null | undefined;
  readonly observe: ((exchange: FinishedExchange<C>) => void) | undefined;
  /** Paths of unsupported resources. Their clients expect 404 errors without the gateway's metadata. */
  readonly unsupported: RegExp;
  readonly clock: Clock;
  readonly log: Log;
  readonly limits: Readonly<HttpLimits>;
  readonly proxies: () => TrustedProxies;
  readonly endOfTurn: EndOfTurn;
  /** Exchanges whose client still has to send bytes; swept regularly for timeouts. */
  readonly receiving: SweptList;
  /** Connections that wait for their next request, and the number of sweeps after which they are closed. */
  readonly idle: SweptList;
  readonly idleSweeps: number;
  /** Unfinished exchanges and the bytes of their bodies. */
  exchanges: number;
  bodyBytes: number;
  draining: boolean;
}

/** The part of the core that a lingering connection needs. */
export type LingerCore = Pick<Core<never>, 'receiving' | 'clock' | 'limits'>;

/** A list that is swept regularly. */
interface SweptList {
  /** Returns the member's slot, for `delete`. */
  add(member: HasTimeout): number;
  delete(member: HasTimeout, slot: number): void;
}

/** Something with a timeout. */
export interface HasTimeout {
  /** Called regularly with the clock's monotonic time. */
  checkTimeout(nowMs: number): void;
}

/** An exchange that is open on a connection. */
interface OpenExchange {
  /** The client has disconnected. Idempotent. */
  finished(): void;
  badBody(error: GatewayError): boolean;
  /** Something waits for the client to disconnect, in order to abort what it does for it. */
  readonly isAbortable: boolean;
}

/**
 * A client's connection, its unfinished exchanges, and how long it has been idle. Idle time is counted in sweeps, not
 * wall time, so a suspended process does not drop every idle connection when it resumes. (Node's own keep-alive timer
 * would be reset twice per request.)
 */
export class Connection implements HasTimeout {
  readonly open = new SlotList<OpenExchange>();
  readonly #socket: Socket;
  readonly #core: LingerCore & Pick<Core<never>, 'idle' | 'idleSweeps'>;
  #linger: Linger | undefined;
  #isHalfClosed = false;
  #idleSweeps = 0;
  #slot = -1;
  #closed = false;

  constructor(socket: Socket, core: LingerCore & Pick<Core<never>, 'idle' | 'idleSweeps'>) {
    this.#socket = socket;
    this.#core = core;
  }

  /** @returns the slot, for `ended` */
  begun(exchange: OpenExchange): number {
    this.#removeFromIdle();
    return this.open.add(exchange);
  }

  ended(exchange: OpenExchange, slot: number): void {
    this.open.delete(exchange, slot);
    if (this.open.size > 0 || this.#closed) return;
    this.#idleSweeps = 0;
    this.#slot = this.#core.idle.add(this);
  }

  /** Reads and drops the rest of an already answered request, so that the response reaches the client. */
  lingers(): Linger {
    this.#linger = new Linger(this.#socket, this.#core, () => {
      this.#linger = undefined;
    });
    return this.#linger;
  }

  /** Set while the connection drops unread bytes. */
  get linger(): Linger | undefined {
    return this.#linger;
  }

  /**
   * The client has closed its side of the connection. It may have left, or may only have finished sending, as `nc -N` does:
   * the two look the same. It counts as gone if there is something to abort; otherwise it gets its responses. Node ends a
   * connection that awaits none.
   */
  clientEnded(): void {
    this.#isHalfClosed = true;
    for (const { isAbortable } of this.open) if (isAbortable) this.#socket.end();
  }

  /** There is something to abort now. Returns whether the client has left by closing its side. */
  leaves(): boolean {
    if (this.#isHalfClosed) this.#socket.end();
    return this.#isHalfClosed;
  }

  /** The client has disconnected. */
  closed(): void {
    this.#linger?.stop();
    for (const exchange of this.open) exchange.finished();
    this.#closed = true;
    this.#removeFromIdle();
  }

  checkTimeout(): void {
    this.#idleSweeps += 1;
    if (this.#idleSweeps > this.#core.idleSweeps) this.#socket.destroy();
  }

  #removeFromIdle(): void {
    if (this.#slot !== -1) this.#core.idle.delete(this, this.#slot);
    this.#slot = -1;
  }
}
