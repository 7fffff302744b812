/**
 * The SQL of analytics. Statements consist only of text from this file: names select among it, values are parameters,
 * and columns are referenced by position.
 */
import { binSql } from '../spend/index.ts';
import type { Queryable } from '../storage/database.ts';
import type { DimensionName, GranularityName, MetricName, OperatorName } from './names.ts';
import type { AnalyticsQuery, Filter } from './query.ts';
import { type Source, sourceOf } from './sources.sql.ts';

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
  minute: binSql('1 minute', 'g.created_at'),
  hour: binSql('1 hour', 'g.created_at'),
  day: binSql('1 day', 'g.created_at'),
  week: binSql('7 days', 'g.created_at'),
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
  // The many columns of a histogram would take longer to compile than to read.
  const settings = `select set_config('statement_timeout', $1, true), set_config('jit', 'off', true)`;
  await tx.query(settings, [`${Math.ceil(timeoutMs)}ms`]);
  const parameters: unknown[] = [organizationId, query.from, query.until];
  const source = await sourceOf(tx, query, parameters);
  const statement = statementOf(query, source, slugs, parameters);
  return tx.query<AnalyticsRow>(statement, parameters);
}

function statementOf(
  query: AnalyticsQuery,
  source: Source,
  slugs: ReadonlyMap<string, string>,
  parameters: unknown[],
): string {
  const { dimensions, metrics, granularity, limit, groupLimit } = query;
  const dimensionOf = (name: DimensionName): DimensionSql => {
    const value = source.dimensions?.[name];
    return value === undefined ? DIMENSION_SQL[name] : { value };
  };
  const used = new Set([...dimensions, ...query.filters.map(({ field }) => field)]);
  const joins = [
    ...(used.has('model') ? [slugJoin(slugs, parameters)] : []),
    ...(used.has('api_key_id') || used.has('user') ? ['left join api_keys k on k.id::text = g.key_id'] : []),
  ];
  const filters = query.filters.map((filter) => ` and ${conditionOf(filter, dimensionOf(filter.field), parameters)}`);
  const columns = [
    ...(granularity === undefined ? [] : [`${BUCKET_SQL[granularity]} as date`]),
    ...dimensions.map((name, at) => `${dimensionOf(name).value} as v${at}`),
    ...dimensions.map((name, at) => `${shownSql(dimensionOf(name))} as d${at}`),
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

function shownSql({ value, shown = value }: DimensionSql): string {
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
function conditionOf(
  { field, operator, values, includeUnset }: Filter,
  { value }: DimensionSql,
  parameters: unknown[],
): string {
  const type = TYPE_SQL[field] ?? 'text';
  if (operator === 'in' || operator === 'not_in') {
    const quantifier = operator === 'in' ? '= any' : '<> all';
    const test = `${value} ${quantifier} ($${parameters.push(values)}::${type}[])`;
    return includeUnset ? `(${test} or ${value} is null)` : `(${test})`;
  }
  return `(${inOrder(field, value)} ${COMPARISON_SQL[operator]} $${parameters.push(values[0])}::${type})`;
}
