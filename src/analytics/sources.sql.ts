/**
 * The tables that answer a query: rows of the ledger, or totals that equal them. Totals answer as much of the range as they can,
 * and rows the rest.
 */
import { failedSql, hoursToCount, percentileSql, promptTokensSql, rowsAsTotals, totalsWhere } from '../spend/index.ts';
import type { Queryable } from '../storage/database.ts';
import type { DimensionName, MetricName } from './names.ts';
import type { AnalyticsQuery } from './query.ts';
import { hasWholeHour, type Span, spansOf } from './spans.ts';

const PROMPT = promptTokensSql('g.');
const FAILED = failedSql('g.');
const sum = (what: string) => `coalesce(sum(${what}), 0)::bigint`;
const percentile = (share: number) => `percentile_cont(${share}) within group (order by g.latency_ms)`;

/** Money in nano-dollars; integers as bigint, other numbers as double precision. */
const METRIC_SQL: Record<MetricName, string> = {
  request_count: 'count(*)',
  error_count: `count(*) filter (where ${FAILED})`,
  cancelled_count: 'count(*) filter (where g.cancelled)',
  response_cache_hits: 'count(g.response_cache_source_id)',
  active_keys: 'count(distinct g.key_id)',
  tokens_total: sum(`${PROMPT} + g.output_tokens`),
  tokens_prompt: sum(PROMPT),
  tokens_completion: sum('g.output_tokens'),
  reasoning_tokens: sum('g.reasoning_tokens'),
  cached_tokens: sum('g.cache_read_tokens'),
  cache_write_tokens: sum('g.cache_write_5m_tokens + g.cache_write_1h_tokens'),
  total_usage: sum('g.cost_nano'),
  usage_byok: sum('g.byok_nano'),
  usage_upstream: sum('g.upstream_cost_nano'),
  usage_cache: sum('g.cache_discount_nano'),
  cache_hit_rate: `sum(g.cache_read_tokens)::float8 / nullif(sum(${PROMPT}), 0)::float8`,
  error_rate: `(count(*) filter (where ${FAILED}))::float8 / nullif(count(*), 0)`,
  latency_avg: 'avg(g.latency_ms)',
  latency_p50: percentile(0.5),
  latency_p95: percentile(0.95),
  latency_p99: percentile(0.99),
  generation_time_avg: 'avg(g.generation_ms)',
  throughput: `1000 * (sum(g.output_tokens) filter (where g.generation_ms > 0))::float8
    / nullif(sum(g.generation_ms) filter (where g.generation_ms > 0), 0)`,
};

const bucketed = (share: number) => percentileSql('g', share);

/** The same over totals; a single row of the ledger counts as a total of one request. Percentiles are those of a histogram. */
const TOTAL_METRIC_SQL: Record<MetricName, string> = {
  request_count: sum('g.requests'),
  error_count: sum('g.errors'),
  cancelled_count: sum('g.cancelled'),
  response_cache_hits: sum('g.cache_hits'),
  active_keys: 'count(distinct g.key_id)',
  tokens_total: sum('g.prompt_tokens + g.completion_tokens'),
  tokens_prompt: sum('g.prompt_tokens'),
  tokens_completion: sum('g.completion_tokens'),
  reasoning_tokens: sum('g.reasoning_tokens'),
  cached_tokens: sum('g.cache_read_tokens'),
  cache_write_tokens: sum('g.cache_write_tokens'),
  total_usage: sum('g.cost_nano'),
  usage_byok: sum('g.byok_nano'),
  usage_upstream: sum('g.upstream_cost_nano'),
  usage_cache: sum('g.cache_discount_nano'),
  cache_hit_rate: 'sum(g.cache_read_tokens)::float8 / nullif(sum(g.prompt_tokens), 0)::float8',
  error_rate: 'coalesce(sum(g.errors), 0)::float8 / nullif(sum(g.requests), 0)::float8',
  latency_avg: 'sum(g.latency_us)::float8 / 1000 / sum(g.latencies)::float8',
  latency_p50: bucketed(0.5),
  latency_p95: bucketed(0.95),
  latency_p99: bucketed(0.99),
  generation_time_avg: 'sum(g.generation_us)::float8 / 1000 / sum(g.generations)::float8',
  throughput: '1000000 * sum(g.timed_completion_tokens)::float8 / nullif(sum(g.generation_us), 0)::float8',
};
const PERCENTILES: ReadonlySet<MetricName> = new Set(['latency_p50', 'latency_p95', 'latency_p99']);
/** The dimensions of the totals of hours and days without keys, and of those by key. */
const ROUTE_DIMENSIONS: ReadonlySet<DimensionName> = new Set([
  ...(['model', 'provider', 'endpoint', 'workspace', 'api_type', 'status', 'error_type'] as const),
]);
const KEY_DIMENSIONS: ReadonlySet<DimensionName> = new Set(['api_key_id', 'user', 'workspace']);
/** Dimensions and metrics of the daily totals by key, model and endpoint (`generation_days`). */
const DAY_DIMENSIONS: ReadonlySet<DimensionName> = new Set(['model', 'endpoint', 'api_key_id', 'user', 'workspace']);
const DAY_METRICS: ReadonlySet<MetricName> = new Set([
  ...([
    'request_count',
    'active_keys',
    'tokens_total',
    'tokens_prompt',
    'tokens_completion',
    'reasoning_tokens',
  ] as const),
  ...(['total_usage', 'usage_byok'] as const),
]);

/** The table that answers a query. */
export interface Source {
  /** Provides the columns that dimensions, metrics and conditions use. */
  from: string;
  /** Dimensions whose SQL differs from that for rows. */
  dimensions?: Partial<Record<DimensionName, string>>;
  metrics: Partial<Record<MetricName, string>>;
  requests: string;
  /** Condition on the organization and the time range, in the form that the source's index supports. */
  within: string;
}

const ROWS: Source = {
  from: 'generations',
  metrics: METRIC_SQL,
  requests: 'count(*)',
  within: 'g.organization_id = $1 and g.created_at >= $2 and g.created_at < $3',
};
const FIRST_MIDNIGHT = `date_trunc('day', $2::timestamptz + interval '1 day' - interval '1 microsecond', 'UTC')`;
const LAST_MIDNIGHT = `date_trunc('day', $3::timestamptz, 'UTC')`;
const dayAt = (midnight: string) => `(${midnight} at time zone 'UTC')::date`;

/** The daily totals of the whole days in the range, which equal the rows, and the rows before and after them. */
function daysOf(table: string, keys: string): Source {
  const rows = (from: string, until: string) => `
    select created_at, ${keys}, 1, ${PROMPT}, g.output_tokens, g.reasoning_tokens, g.cost_nano, g.byok_nano
    from generations g where organization_id = $1 and created_at >= ${from} and created_at < ${until}`;
  return {
    from: `(
    select day::timestamp at time zone 'UTC' as created_at, ${keys}, requests, prompt_tokens, completion_tokens,
      reasoning_tokens, cost_nano, byok_nano
    from ${table}
    where organization_id = $1 and day >= ${dayAt(FIRST_MIDNIGHT)} and day < ${dayAt(LAST_MIDNIGHT)}
    union all ${rows('$2', `least($3, ${FIRST_MIDNIGHT})`)}
    union all ${rows(`greatest(${FIRST_MIDNIGHT}, ${LAST_MIDNIGHT})`, '$3')})`,
    metrics: TOTAL_METRIC_SQL,
    requests: sum('g.requests'),
    within: 'true',
  };
}

const DAYS = daysOf('generation_days', 'workspace_id, key_id, model, endpoint_id');
/** The same without the key, for organizations with many keys. */
const MODEL_DAYS = daysOf('generation_model_days', 'workspace_id, model, endpoint_id');

/** If more time than this is left to rows, daily totals are preferred where they can answer: they leave up to two days. */
const FEW_ROWS_MS = 3 * 3_600_000;

/** @param parameters those of `within`; those of the spans are added */
export async function sourceOf(tx: Queryable, query: AnalyticsQuery, parameters: unknown[]): Promise<Source> {
  const byDay = daysFor(query);
  const grains = grainsFor(query);
  const [from, until] = [query.from.getTime(), query.until.getTime()];
  if (grains === undefined || !hasWholeHour(from, until)) return byDay ?? ROWS;
  const spans = spansOf(from, until, await hoursToCount(tx, from, until), query.granularity === 'hour');
  const read = spans.reduce((ms, { grain, from, until }) => (grain === 'rows' ? ms + until - from : ms), 0);
  if (byDay !== undefined && read > FEW_ROWS_MS) return byDay;
  return totalsOf(query, grains, spans, parameters);
}

function daysFor({ granularity, dimensions, filters, metrics }: AnalyticsQuery): Source | undefined {
  const used = [...dimensions, ...filters.map(({ field }) => field)];
  const known = used.every((name) => DAY_DIMENSIONS.has(name));
  const byKey = used.includes('api_key_id') || used.includes('user');
  const summed = metrics.every((name) => DAY_METRICS.has(name));
  if (!known || !summed || granularity === 'minute' || granularity === 'hour') return undefined;
  return byKey || metrics.includes('active_keys') ? DAYS : MODEL_DAYS;
}

/** The prefix of the grains with the fewest totals that can answer. */
function grainsFor({
  granularity,
  dimensions,
  filters,
  metrics,
}: AnalyticsQuery): '' | 'key_' | 'workspace_' | undefined {
  const used = [...dimensions, ...filters.map(({ field }) => field)];
  if (granularity === 'minute') return undefined;
  if (used.every((name) => name === 'workspace') && !metrics.includes('active_keys')) return 'workspace_';
  if (used.every((name) => ROUTE_DIMENSIONS.has(name)) && !metrics.includes('active_keys')) return '';
  return used.every((name) => KEY_DIMENSIONS.has(name)) ? 'key_' : undefined;
}

/** The columns of totals that a query asks for. */
const SEPARATED: Partial<Record<DimensionName, string>> = {
  ...{ model: 'model', provider: 'provider_name', endpoint: 'endpoint_id', workspace: 'workspace_id' },
  ...{ api_type: 'api_type', status: 'status', error_type: 'error_type', api_key_id: 'key_id', user: 'key_id' },
};

function totalsOf(query: AnalyticsQuery, grains: string, spans: readonly Span[], parameters: unknown[]): Source {
  const histogram = query.metrics.some((name) => PERCENTILES.has(name));
  const used = [...query.dimensions, ...query.filters.map(({ field }) => field)];
  const separated = new Set(used.flatMap((name) => SEPARATED[name] ?? []));
  if (query.metrics.includes('active_keys')) separated.add('key_id');
  const parts = spans.map(({ grain, from, until }) => {
    const [first, end] = [from, until].map((ms) => `$${parameters.push(new Date(ms))}::timestamptz`);
    return grain === 'rows'
      ? rowsAsTotals(`organization_id = $1 and created_at >= ${first} and created_at < ${end}`, separated, histogram)
      : totalsWhere(
          `organization_id = $1 and grain = '${grains}${grain}' and at >= ${first} and at < ${end}`,
          histogram,
        );
  });
  return {
    from: `(${parts.join(' union all ')})`,
    dimensions: { error_type: 'g.error_type' },
    metrics: TOTAL_METRIC_SQL,
    requests: sum('g.requests'),
    // Declares the types of parameters that are not used otherwise.
    within: '$2::timestamptz < $3::timestamptz',
  };
}
