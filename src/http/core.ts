/** What the exchanges of one server have in common, and what ties them to their connections. */

import type { IncomingHttpHeaders } from 'node:http';
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
