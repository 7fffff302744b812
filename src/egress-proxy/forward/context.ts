/** What all requests of a sandbox use. */
import type { SecureContext } from 'node:tls';
import type { Allowance } from '../../base/allowance.ts';
import type { Clock } from '../../base/clock.ts';
import type { Checks } from '../../egress/index.ts';
import type { Destination } from '../destination.ts';
import type { Refusal } from '../refusal.ts';

export interface ProxyContext {
  clock: Clock;
  /** The rules for addresses, and how names are resolved. */
  checks: Checks;
  /** The authorities that certificates of hosts are verified with. */
  roots: SecureContext;
  /** Memory for bodies that are held as a whole. */
  bodies: Allowance;
  /** Connections that are being made. Resolving names takes threads, which all sandboxes share. */
  dials: Allowance;
  /** Connections to hosts. A client can send many requests on one connection before the first is answered. */
  connections: Allowance;
}

/** What all sandboxes of the process share. */
export type SharedContext = Omit<ProxyContext, 'bodies' | 'dials' | 'connections'>;

/** Reports a refusal for the audit log. */
export type Report = (refusal: Refusal, destination: Destination | undefined) => void;

/** Connections without any traffic are closed after this time. */
export const IDLE_MS = 10 * 60_000;
/** For the TCP connection and the TLS handshake with a host. */
export const CONNECT_MS = 15_000;
/** The most bytes of the head of a request or response, without the secrets in it. */
export const MOST_HEAD_BYTES = 64 * 1024;

/** Runs `work` with a deadline. Its signal aborts after `delayMs`. */
export async function withDeadline<T>(clock: Clock, delayMs: number, work: (signal: AbortSignal) => Promise<T>) {
  const controller = new AbortController();
  const timer = clock.timer(delayMs, () => controller.abort(new Error('timeout')));
  try {
    return await work(controller.signal);
  } finally {
    timer.cancel();
  }
}
