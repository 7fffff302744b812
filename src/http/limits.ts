/** Limits of the HTTP server; each one bounds something that a hostile client could let grow. */
export interface HttpLimits {
  /** Request line and headers together, bytes; 431 above it. */
  headerBytes: number;
  /**
   * From the first byte of a request, or from the connection if none arrives, to the end of its headers; 408 after it.
   */
  headerMs: number;
  /** Body of an operation without a limit of its own, bytes; 413 above it. */
  bodyBytes: number;
  /** Time for a body of any length; 408 after it. Received bytes extend it at `bodyBytesPerSecond`. */
  bodyMs: number;
  /** The slowest rate for a long body. Received bytes extend `bodyMs` at this rate. */
  bodyBytesPerSecond: number;
  /** Bodies of all unfinished exchanges together; 503 above it. */
  bodyBytesInFlight: number;
  /** Unfinished exchanges; 503 above it. */
  exchanges: number;
  /** Unfinished exchanges of one connection (pipelining), which is cut above it. Most clients send one request at a time. */
  exchangesPerConnection: number;
  /** Open connections; further ones are closed without a response. */
  connections: number;
  /** How long an idle connection stays open; longer than the usual load balancer's 60 s. */
  keepAliveMs: number;
  /** Nesting of bodies; 400 above it. */
  depth: number;
  /** Bytes read and dropped of an already answered request's body, so that the response reaches the client. */
  lingerBytes: number;
  /** Time without a byte, and in total (`lingerTotalMs`). */
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
  exchanges: 20_000,
  exchangesPerConnection: 128,
  connections: 20_000,
  keepAliveMs: 75_000,
  depth: 128,
  lingerBytes: 64 * 1024 * 1024,
  lingerMs: 5_000,
  lingerTotalMs: 30_000,
};
