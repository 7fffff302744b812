/**
 * Every name that a query may use. Only these names select parts of a statement; `store.ts` maps each to its SQL.
 */

export const GRANULARITIES = {
  minute: 'Minute',
  hour: 'Hour',
  day: 'Day',
  week: 'Week',
  month: 'Month',
} as const;
export type GranularityName = keyof typeof GRANULARITIES;

export type OperatorName = 'eq' | 'neq' | 'in' | 'not_in' | 'gt' | 'gte' | 'lt' | 'lte';
export const OPERATORS: Record<OperatorName, 'scalar' | 'array'> = {
  eq: 'scalar',
  neq: 'scalar',
  in: 'array',
  not_in: 'array',
  gt: 'scalar',
  gte: 'scalar',
  lt: 'scalar',
  lte: 'scalar',
};

interface Dimension {
  label: string;
  /** Type of its values in filters; `id` values have no order. */
  values: 'text' | 'id' | 'integer' | 'boolean';
}

export const DIMENSIONS = {
  model: { label: 'Model', values: 'text' },
  provider: { label: 'Provider', values: 'text' },
  endpoint: { label: 'Endpoint', values: 'text' },
  api_key_id: { label: 'API key', values: 'id' },
  user: { label: 'Member', values: 'id' },
  workspace: { label: 'Workspace', values: 'id' },
  origin: { label: 'Origin', values: 'text' },
  app_title: { label: 'App', values: 'text' },
  external_user: { label: 'External user', values: 'text' },
  session: { label: 'Session', values: 'text' },
  api_type: { label: 'API', values: 'text' },
  data_region: { label: 'Data region', values: 'text' },
  status: { label: 'HTTP status', values: 'integer' },
  error_type: { label: 'Error', values: 'text' },
  finish_reason: { label: 'Finish reason', values: 'text' },
  service_tier: { label: 'Service tier', values: 'text' },
  streamed: { label: 'Streamed', values: 'boolean' },
  is_byok: { label: 'BYOK', values: 'boolean' },
} as const satisfies Record<string, Dimension>;
export type DimensionName = keyof typeof DIMENSIONS;

interface Metric {
  label: string;
  format: 'number' | 'currency' | 'percent' | 'latency' | 'throughput';
  /** A ratio or percentile: values of groups do not add up, and null means there is nothing to compute from. */
  isRate: boolean;
}

const count = (label: string) => ({ label, format: 'number', isRate: false }) as const;
const usd = (label: string) => ({ label, format: 'currency', isRate: false }) as const;
const rate = <F extends Metric['format']>(label: string, format: F) => ({ label, format, isRate: true }) as const;

export const METRICS = {
  request_count: count('Requests'),
  error_count: count('Failed requests'),
  cancelled_count: count('Cancelled requests'),
  response_cache_hits: count('Responses from the response cache'),
  active_keys: { label: 'Keys in use', format: 'number', isRate: true },
  tokens_total: count('Tokens'),
  tokens_prompt: count('Prompt tokens'),
  tokens_completion: count('Completion tokens'),
  reasoning_tokens: count('Reasoning tokens'),
  cached_tokens: count('Prompt tokens read from the cache'),
  cache_write_tokens: count('Prompt tokens written to the cache'),
  total_usage: usd('Usage'),
  usage_byok: usd('Usage on BYOK credentials'),
  usage_upstream: usd('Cost at the providers, where known'),
  usage_cache: usd('Saved by prompt caching'),
  cache_hit_rate: rate('Share of the prompt from the cache', 'percent'),
  error_rate: rate('Share of failed requests', 'percent'),
  latency_avg: rate('Time to the first token, mean', 'latency'),
  latency_p50: rate('Time to the first token, median', 'latency'),
  latency_p95: rate('Time to the first token, 95th percentile', 'latency'),
  latency_p99: rate('Time to the first token, 99th percentile', 'latency'),
  generation_time_avg: rate('Generation time, mean', 'latency'),
  throughput: rate('Completion tokens per second', 'throughput'),
} as const satisfies Record<string, Metric>;
export type MetricName = keyof typeof METRICS;

/** The reply of `GET /analytics/meta`. */
export function meta() {
  return {
    dimensions: Object.entries(DIMENSIONS).map(([name, { label }]) => ({ name, display_label: label })),
    granularities: Object.entries(GRANULARITIES).map(([name, label]) => ({ name, display_label: label })),
    metrics: Object.entries(METRICS).map(([name, { label, format, isRate }]) => ({
      name,
      display_label: label,
      display_format: format,
      is_rate: isRate,
    })),
    operators: Object.entries(OPERATORS).map(([name, type]) => ({ name, value_type: type })),
  };
}
