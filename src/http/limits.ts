/** What one client may ask of the server; every number bounds something that a hostile one would let grow. */
export interface HttpLimits {
  /** Request line and headers together, bytes: 431 past it. */
  headerBytes: number;
  /** From the first byte of a request, or from the connection when none comes, to the end of its headers: 408 past it. */
  headerMs: number;
  /** Body of an operation that sets no limit of its own, bytes: 413 past it. */
  bodyBytes: number;
  /** How long a body may take, whatever its length: 408 past it, plus the time that `bodyBytesPerSecond` grants. */
  bodyMs: number;
  /** Slowest arrival of a long body. Received bytes extend `bodyMs` at this rate. */
  bodyBytesPerSecond: number;
  /** Bodies of all unfinished exchanges together: 503 past it. */
  bodyBytesInFlight: number;
  /** Unfinished exchanges: 503 past it. */
  exchanges: number;
  /** Open connections; further ones are closed unanswered. */
  connections: number;
  /** How long an idle connection stays open; longer than the usual load balancer's 60 s. */
  keepAliveMs: number;
  /** Nesting of bodies: 400 past it. */
  depth: number;
  /** What is still read, and thrown away, of a body whose request is answered already, so that the answer arrives. */
  lingerBytes: number;
  /** Without a byte, and altogether. */
  lingerMs: number;
  lingerTotalMs: number;
}

export const DEFAULT_LIMITS: Readonly<HttpLimits> = {
  headerBytes: 32 * 1024,
  headerMs: 10_000,
  bodyBytes: 1024 * 1024,
  bodyMs: 10_000,
  bodyBytesPerSecond: 32 * 1024,
  bodyBytesInFlight: 1024 * 1024 * 1024,
  exchanges: 10_000,
  connections: 20_000,
  keepAliveMs: 75_000,
  depth: 128,
  lingerBytes: 64 * 1024 * 1024,
  lingerMs: 5_000,
  lingerTotalMs: 30_000,
};
