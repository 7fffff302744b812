/** What the statistics say about one endpoint (wire/models.md, PublicEndpoint). */

/** As `PercentileStats` on the wire. */
export interface Percentiles {
  p50: number;
  p75: number;
  p90: number;
  p99: number;
}

export interface EndpointFigures {
  /** From the dispatch to the first token of a streamed answer, ms, of the last 30 minutes; null: none was measured. */
  latencyMs: Percentiles | null;
  /** Output tokens a second from the dispatch to the answer's end, of the last 30 minutes; null: none was measured. */
  throughput: Percentiles | null;
  /** Percent of the tries that the endpoint answered, rate limits and faults of the client's aside; null: no try. */
  uptime5m: number | null;
  uptime30m: number | null;
  uptime1d: number | null;
  /** Tries that `uptime5m` and `uptime30m` rest on, and those that were rate limited. */
  requests5m: number;
  requests30m: number;
  rateLimited30m: number;
  /** Tool calls that the endpoint's model made in the last day, and those of them that no client could run. */
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

/** What is known of every endpoint, over all processes; answers from memory and never waits. */
export interface EndpointStatistics {
  /** `NO_FIGURES` for an endpoint that was not asked in the last day. */
  of(endpointId: string): EndpointFigures;
}

/** How one call of an endpoint went, for `Statistics.record`. */
export interface Measured {
  /** `none`: says nothing about the endpoint (the client left, or was at fault), but its other figures count. */
  outcome: 'answered' | 'failed' | 'rate_limited' | 'none';
  /** Of a streamed answer that brought something. */
  latencyMs: number | null;
  /** Tokens a second, where the upstream counted its tokens. */
  throughput: number | null;
  toolCalls: number;
  invalidToolCalls: number;
}
