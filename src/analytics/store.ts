/**
 * The SQL of analytics. Statements consist only of text from this file: names select among it, values are parameters,
 * and columns are referenced by position.
 */
import type { Queryable } from '../storage/database.ts';
import type { DimensionName, GranularityName, MetricName, OperatorName } from './names.ts';
import type { AnalyticsQuery, Filter } from './query.ts';

const PROMPT = 'g.input_tokens + g.cache_read_tokens + g.cache_write_5m_tokens + g.cache_write_1h_tokens';
const sum = (what: string) => `coalesce(sum(${what}), 0)::bigint`;
const percentile = (share: number) => `percentile_cont(${share}) within group (order by g.latency_ms)`;
/** Errors sent to the client, and answers that broke off after their headers. */
const FAILED = 'g.error is not null or g.status >= 400';

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

/** The same over daily totals; a single row of the ledger counts as a total of one request. */
const DAY_METRIC_SQL: Partial<Record<MetricName, string>> = {
  request_count: sum('g.requests'),
  active_keys: 'count(distinct g.key_id)',
  tokens_total: sum('g.prompt_tokens + g.completion_tokens'),
  tokens_prompt: sum('g.prompt_tokens'),
  tokens_completion: sum('g.completion_tokens'),
  reasoning_tokens: sum('g.reasoning_tokens'),
  total_usage: sum('g.cost_nano'),
  usage_byok: sum('g.byok_nano'),
};
const DAY_DIMENSIONS: ReadonlySet<DimensionName> = new Set(['model', 'endpoint', 'api_key_id', 'user', 'workspace']);
const KEY_DIMENSIONS: ReadonlySet<DimensionName> = new Set(['api_key_id', 'user']);

/** `value` is grouped and filtered by; `shown` is what a row of the answer displays. */
interface DimensionSql {
  value: string;
  shown?: string;
}

const DIMENSION_SQL: Record<DimensionName, DimensionSql> = {
  model: { value: 'coalesce(s.slug, g.model)' },
  provider: { value: 'g.provider_name' },
  endpoint: { value: `nullif(g.endpoint_id, '')` },
  api_key_id: { value: 'g.key_id', shown: 'coalesce(k.label, g.key_id)' },
  user: { value: 'k.creator_user_id' },
  workspace: { value: 'g.workspace_id' },
  origin: { value: `nullif(g.origin, '')` },
  app_title: { value: 'g.title' },
  external_user: { value: 'g.external_user' },
  session: { value: 'g.session_id' },
  api_type: { value: 'g.api_type' },
  data_region: { value: 'g.data_region' },
  status: { value: 'g.status' },
  error_type: { value: `g.error ->> 'type'` },
  finish_reason: { value: 'g.finish_reason' },
  service_tier: { value: 'g.service_tier' },
  streamed: { value: 'g.streamed' },
  is_byok: { value: 'g.is_byok' },
};

const TYPE_SQL: Partial<Record<DimensionName, string>> = { status: 'integer', streamed: 'boolean', is_byok: 'boolean' };

/** Collation "C", so that the order is the same on every server. */
const inOrder = (name: DimensionName, expression: string) =>
  TYPE_SQL[name] === undefined ? `(${expression}) collate "C"` : expression;

const BUCKET_SQL: Record<GranularityName, string> = {
  minute: `date_trunc('minute', g.created_at, 'UTC')`,
  hour: `date_trunc('hour', g.created_at, 'UTC')`,
  day: `date_trunc('day', g.created_at, 'UTC')`,
  week: `date_trunc('week', g.created_at, 'UTC')`,
  month: `date_trunc('month', g.created_at, 'UTC')`,
};

const COMPARISON_SQL: Record<Exclude<OperatorName, 'in' | 'not_in'>, string> = {
  eq: '=',
  neq: '<>',
  gt: '>',
  gte: '>=',
  lt: '<',
  lte: '<=',
};

/** The table that answers a query. */
interface Source {
  /** Provides the columns that dimensions, metrics and conditions use. */
  from: string;
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

/**
 * The daily totals of the whole days in the range, which equal the rows, and the rows before and after them. Queries over
 * months with many millions of rows are answered from here.
 */
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
    metrics: DAY_METRIC_SQL,
    requests: sum('g.requests'),
    within: 'true',
  };
}

const DAYS = daysOf('generation_days', 'workspace_id, key_id, model, endpoint_id');
/** The same without the key, for organizations with many keys. */
const MODEL_DAYS = daysOf('generation_model_days', 'workspace_id, model, endpoint_id');

function sourceOf({ granularity, dimensions, filters, metrics }: AnalyticsQuery): Source {
  const used = [...dimensions, ...filters.map(({ field }) => field)];
  const known = used.every((name) => DAY_DIMENSIONS.has(name));
  const byKey = used.some((name) => KEY_DIMENSIONS.has(name));
  const summed = metrics.every((name) => DAY_METRIC_SQL[name] !== undefined);
  if (!known || !summed || granularity === 'minute' || granularity === 'hour') return ROWS;
  return byKey || metrics.includes('active_keys') ? DAYS : MODEL_DAYS;
}

export interface AnalyticsRow {
  /** Total number of rows. */
  total: bigint;
  date?: Date;
  [column: string]: unknown;
}

/**
 * Rows with the columns `date`, `d0`, `d1`, ... and `m0`, `m1`, ..., in the query's order of dimensions and metrics.
 * Fails with SQLSTATE 57014 after `timeoutMs`; the server has stopped by then. Call it in a transaction.
 * @param slugs permaslugs by model id, where they differ
 */
export async function selectRows(
  tx: Queryable,
  organizationId: string,
  query: AnalyticsQuery,
  slugs: ReadonlyMap<string, string>,
  timeoutMs: number,
): Promise<AnalyticsRow[]> {
  await tx.query('set transaction read only');
  await tx.query(`select set_config('statement_timeout', $1, true)`, [`${Math.ceil(timeoutMs)}ms`]);
  const parameters: unknown[] = [organizationId, query.from, query.until];
  const statement = statementOf(query, slugs, parameters);
  return tx.query<AnalyticsRow>(statement, parameters);
}

function statementOf(query: AnalyticsQuery, slugs: ReadonlyMap<string, string>, parameters: unknown[]): string {
  const { dimensions, metrics, granularity, limit, groupLimit } = query;
  const source = sourceOf(query);
  const used = new Set([...dimensions, ...query.filters.map(({ field }) => field)]);
  const joins = [
    ...(used.has('model') ? [slugJoin(slugs, parameters)] : []),
    ...(used.has('api_key_id') || used.has('user') ? ['left join api_keys k on k.id::text = g.key_id'] : []),
  ];
  const filters = query.filters.map((filter) => ` and ${conditionOf(filter, parameters)}`);
  const columns = [
    ...(granularity === undefined ? [] : [`${BUCKET_SQL[granularity]} as date`]),
    ...dimensions.map((name, at) => `${DIMENSION_SQL[name].value} as v${at}`),
    ...dimensions.map((name, at) => `${shownSql(name)} as d${at}`),
    ...metrics.map((name, at) => `${source.metrics[name]} as m${at}`),
    `${source.requests} as requests`,
  ];
  const keys = (granularity === undefined ? 0 : 1) + 2 * dimensions.length;
  const groups = Array.from({ length: keys }, (_, at) => at + 1).join(', ');
  const order = orderOf(query);
  const partition = dimensions.length > 0 ? `partition by ${dimensions.map((_, at) => `v${at}`).join(', ')} ` : '';
  return `with grouped as (
      select ${columns.join(', ')} from ${source.from} g ${joins.join(' ')}
      where ${source.within}${filters.join('')}
      ${keys > 0 ? `group by ${groups}` : ''}
    ), placed as (
      select *, count(*) over () as total, row_number() over (${partition}order by ${order}) as place from grouped
    )
    select * from placed ${groupLimit === undefined ? '' : `where place <= $${parameters.push(groupLimit)}`}
    order by ${order} limit $${parameters.push(limit)}`;
}

function shownSql(name: DimensionName): string {
  const { value, shown = value } = DIMENSION_SQL[name];
  return shown;
}

function slugJoin(slugs: ReadonlyMap<string, string>, parameters: unknown[]): string {
  const parameter = parameters.push(JSON.stringify(Object.fromEntries(slugs)));
  return `left join jsonb_each_text($${parameter}::jsonb) as s(id, slug) on s.id = g.model`;
}

/** The requested order first, then time and dimensions, so that repeated queries return the same order. */
function orderOf({ orderBy, dimensions, metrics, granularity }: AnalyticsQuery): string {
  const date = granularity === undefined ? [] : ['date'];
  const ranks = [...date, ...dimensions.flatMap((name, at) => [inOrder(name, `d${at}`), inOrder(name, `v${at}`)])];
  const direction = orderBy.descending ? 'desc' : 'asc';
  const first = firstRank(orderBy.field, dimensions, metrics);
  return [`${first} ${direction} nulls last`, ...ranks.map((rank) => `${rank} nulls last`)].join(', ');
}

function firstRank(
  field: AnalyticsQuery['orderBy']['field'],
  dimensions: readonly DimensionName[],
  metrics: readonly MetricName[],
): string {
  if (field === 'date') return 'date';
  const dimension = dimensions.indexOf(field as DimensionName);
  if (dimension !== -1) return inOrder(dimensions[dimension]!, `d${dimension}`);
  const metric = metrics.indexOf(field as MetricName);
  return metric === -1 ? 'requests' : `m${metric}`;
}

/** A dimension without a value matches no filter, unless the filter includes unset values. */
function conditionOf({ field, operator, values, includeUnset }: Filter, parameters: unknown[]): string {
  const { value } = DIMENSION_SQL[field];
  const type = TYPE_SQL[field] ?? 'text';
  if (operator === 'in' || operator === 'not_in') {
    const quantifier = operator === 'in' ? '= any' : '<> all';
    const test = `${value} ${quantifier} ($${parameters.push(values)}::${type}[])`;
    return includeUnset ? `(${test} or ${value} is null)` : `(${test})`;
  }
  return `(${inOrder(field, value)} ${COMPARISON_SQL[operator]} $${parameters.push(values[0])}::${type})`;
}
