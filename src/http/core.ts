/** What the exchanges of one server have in common, and what ties them to their connections. */

import type { IncomingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../base/clock.ts';
import type { GatewayError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { Roster } from '../base/roster.ts';
import type { TrustedProxies } from './forwarded.ts';
import type { HttpLimits } from './limits.ts';
import { Linger } from './linger.ts';
import type { Access, FinishedExchange } from './operation.ts';
import type { Router } from './router.ts';

/** What all exchanges of a server share. */
export interface Core<C> {
  readonly router: Router<C>;
  readonly authenticate: (headers: IncomingHttpHeaders) => C | Promise<C>;
  readonly admit: (caller: C, access: Access) => void;
  readonly userId: (caller: C) => string | null | undefined;
  readonly observe: ((exchange: FinishedExchange<C>) => void) | undefined;
  /** Paths of resources that are not built, whose clients know no metadata of a 404 but their own. */
  readonly unbuilt: RegExp;
  readonly clock: Clock;
  readonly log: Log;
  readonly limits: Readonly<HttpLimits>;
  readonly proxies: () => TrustedProxies;
  /** Exchanges whose client owes bytes; they are looked at for lateness now and then. */
  readonly owing: Watched;
  /** Connections that wait for their next request, and how many looks they outlast. */
  readonly idle: Watched;
  readonly idleLooks: number;
  /** Unfinished exchanges and the bytes of their bodies. */
  exchanges: number;
  bodyBytes: number;
  draining: boolean;
}

/** What a lingering connection needs. */
export type LingerCore = Pick<Core<never>, 'owing' | 'clock' | 'limits'>;

/** Who is looked at now and then. */
interface Watched {
  /** Its seat, which `delete` wants to know. */
  add(member: Late): number;
  delete(member: Late, seat: number): void;
}

/** Something that must not wait for ever. */
export interface Late {
  /** Called now and then with the clock's monotonic time. */
  checkLateness(nowMs: number): void;
}

/** What runs on a connection. */
interface OpenExchange {
  /** The client is gone. Idempotent. */
  finished(): void;
  badBody(error: GatewayError): boolean;
}

/**
 * A client's connection, what is unfinished on it, and how long nothing has been: counted in looks and not in time, since a
 * process that was stopped for a while has not heard its clients either. (node's own timer for this is set anew twice for
 * each request.)
 */
export class Connection implements Late {
  readonly open = new Roster<OpenExchange>();
  readonly #socket: Socket;
  readonly #core: LingerCore & Pick<Core<never>, 'idle' | 'idleLooks'>;
  #linger: Linger | undefined;
  #looks = 0;
  #seat = -1;
  #closed = false;

  constructor(socket: Socket, core: LingerCore & Pick<Core<never>, 'idle' | 'idleLooks'>) {
    this.#socket = socket;
    this.#core = core;
  }

  /** @returns the seat that `ended` wants to know */
  begun(exchange: OpenExchange): number {
    this.#leaveIdle();
    return this.open.add(exchange);
  }

  ended(exchange: OpenExchange, seat: number): void {
    this.open.delete(exchange, seat);
    if (this.open.size > 0 || this.#closed) return;
    this.#looks = 0;
    this.#seat = this.#core.idle.add(this);
  }

  /** What still comes of a request that is answered is read and dropped, so that the answer arrives. */
  lingers(): Linger {
    this.#linger = new Linger(this.#socket, this.#core, () => {
      this.#linger = undefined;
    });
    return this.#linger;
  }

  /** Its client may send bytes that nobody wants. */
  get linger(): Linger | undefined {
    return this.#linger;
  }

  /** The client is gone. */
  closed(): void {
    this.#linger?.stop();
    for (const exchange of this.open) exchange.finished();
    this.#closed = true;
    this.#leaveIdle();
  }

  checkLateness(): void {
    this.#looks += 1;
    if (this.#looks > this.#core.idleLooks) this.#socket.destroy();
  }

  #leaveIdle(): void {
    if (this.#seat !== -1) this.#core.idle.delete(this, this.#seat);
    this.#seat = -1;
  }
}
