/** Statistics of one endpoint. */

/** As `PercentileStats` on the wire. */
export interface Percentiles {
  p50: number;
  p75: number;
  p90: number;
  p99: number;
}

export interface EndpointFigures {
  /** Time to the first token of streamed replies in ms, over the last 30 minutes; null if none was measured. */
  latencyMs: Percentiles | null;
  /**
   * Output tokens per second, from dispatch to the end of the reply, over the last 30 minutes; null if none was
   * measured.
   */
  throughput: Percentiles | null;
  /** Percent of attempts that succeeded, excluding rate limits and client errors; null if there were no attempts. */
  uptime5m: number | null;
  uptime30m: number | null;
  uptime1d: number | null;
  /** Attempts behind `uptime5m` and `uptime30m`, and the rate-limited ones. */
  requests5m: number;
  requests30m: number;
  rateLimited30m: number;
  /** Tool calls by the model in the last day, and the invalid ones among them. */
  toolCalls1d: number;
  invalidToolCalls1d: number;
}

export const NO_FIGURES: EndpointFigures = Object.freeze({
  latencyMs: null,
  throughput: null,
  uptime5m: null,
  uptime30m: null,
  uptime1d: null,
  requests5m: 0,
  requests30m: 0,
  rateLimited30m: 0,
  toolCalls1d: 0,
  invalidToolCalls1d: 0,
});

/** Statistics of every endpoint over all processes. Served from memory, never waits. */
export interface EndpointStatistics {
  /** `NO_FIGURES` for an endpoint without calls in the last day. */
  of(endpointId: string): EndpointFigures;
}

/** The result of one call to an endpoint, for `Statistics.record`. */
export interface Measured {
  /** `none`: the outcome does not count (client disconnect or client error), but the other figures do. */
  outcome: 'answered' | 'failed' | 'rate_limited' | 'none';
  /** For streamed replies with content. */
  latencyMs: number | null;
  /** Tokens per second, if the upstream reported token counts. */
  throughput: number | null;
  toolCalls: number;
  invalidToolCalls: number;
}
