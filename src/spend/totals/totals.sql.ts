/**
 * Totals of generations by hour and day (`generation_totals`). An hour that is over and not noted in
 * `generation_hours_to_count` has totals that equal its rows; so has a day without such an hour.
 */
import { BUCKETS, bucketSql } from './histogram.sql.ts';

const A_MONDAY = '2000-01-03 00:00+00';
const PROMPT_COLUMNS = ['input_tokens', 'cache_read_tokens', 'cache_write_5m_tokens', 'cache_write_1h_tokens'];

/**
 * The condition for errors sent to the client, and for answers that broke off after their headers. Indexes have it, too.
 * @param row the alias of the ledger with its dot
 */
export function failedSql(row = ''): string {
  return `(${row}error is not null or ${row}status >= 400)`;
}

/** The sum of all tokens of the prompt. @param row the alias of the ledger with its dot */
export function promptTokensSql(row = ''): string {
  return PROMPT_COLUMNS.map((name) => row + name).join(' + ');
}

/**
 * The beginning of the unit of UTC that a time is in: a number of minutes, hours, days or weeks. `date_trunc` with a time zone
 * takes four times as long.
 */
export function binSql(unit: string, time: string): string {
  return `date_bin(interval '${unit}', ${time}, timestamptz '${A_MONDAY}')`;
}

const one = (condition: string) => `case when ${condition} then 1::bigint end`;
const micros = (ms: string) => `round(${ms} * 1000)::bigint`;

/** By column of the totals, what a row of the ledger adds to it; null adds nothing. */
const VALUES: Readonly<Record<string, string>> = {
  requests: '1::bigint',
  errors: one(failedSql()),
  cancelled: one('cancelled'),
  cache_hits: one('response_cache_source_id is not null'),
  prompt_tokens: promptTokensSql(),
  completion_tokens: 'output_tokens',
  reasoning_tokens: 'reasoning_tokens',
  cache_read_tokens: 'cache_read_tokens',
  cache_write_tokens: 'cache_write_5m_tokens + cache_write_1h_tokens',
  cost_nano: 'cost_nano',
  byok_nano: 'byok_nano',
  upstream_cost_nano: 'upstream_cost_nano',
  cache_discount_nano: 'cache_discount_nano',
  latencies: one('latency_ms is not null'),
  latency_us: micros('latency_ms'),
  generations: one('generation_ms is not null'),
  generation_us: micros('generation_ms'),
  timed_completion_tokens: 'case when generation_ms > 0 then output_tokens end',
};

const SUMS = Object.keys(VALUES);

/** The columns that distinguish totals, besides organization, grain and time. */
const OF_ROUTES = ['workspace_id', 'model', 'endpoint_id', 'provider_name', 'api_type', 'status', 'error_type'];
const OF_KEYS = ['workspace_id', 'key_id'];
const GROUPED = [...new Set([...OF_ROUTES, ...OF_KEYS])];
const typeOf = (name: string) => (name === 'status' ? 'integer' : 'text');

/** Rows of the ledger with what the totals are computed from. */
const entered = (condition: string) => `(
    select *, error ->> 'type' as error_type, ${binSql('1 hour', 'created_at')} as hour, ${bucketSql('latency_ms')} as bucket
    from generations where ${condition} offset 0
  ) entered`;

/**
 * A query for rows of the ledger in the form of totals of an hour.
 * @param condition on the rows
 * @param separated the columns that distinguish these totals; all others are null
 * @param histogram with a column for each bucket of latencies
 */
export function rowsAsTotals(condition: string, separated: ReadonlySet<string>, histogram: boolean): string {
  const kept = GROUPED.filter((name) => separated.has(name));
  const groups = ['hour', ...kept, ...(histogram ? ['bucket'] : [])].join(', ');
  const shown = GROUPED.map((name) => (kept.includes(name) ? name : `null::${typeOf(name)} as ${name}`));
  const buckets = histogram ? BUCKETS.map((name, at) => `case when bucket = ${at} then latencies end as ${name}`) : [];
  return `select hour as created_at, ${[...shown, ...SUMS, ...buckets].join(', ')} from (
      select ${groups}, ${SUMS.map((name) => `sum(${VALUES[name]})::bigint as ${name}`).join(', ')}
      from ${entered(condition)} group by ${groups}
    ) summed`;
}

/** A query for totals in the same form. @param condition on the totals */
export function totalsWhere(condition: string, histogram: boolean): string {
  return `select at as created_at, ${[...GROUPED, ...SUMS, ...(histogram ? BUCKETS : [])].join(', ')}
    from generation_totals where ${condition}`;
}

const ALL = [...SUMS, ...BUCKETS];
const ofRows = [
  ...SUMS.map((name) => `sum(${VALUES[name]})::bigint`),
  ...BUCKETS.map((_, at) => `nullif(count(*) filter (where bucket = ${at}), 0)`),
].join(', ');
const ofTotals = ALL.map((name) => `sum(${name})::bigint`).join(', ');
const INSERT = `insert into generation_totals (organization_id, grain, at, ${GROUPED.join(', ')}, ${ALL.join(', ')})`;

const OF_THE_HOUR = "created_at >= $1::timestamptz and created_at < $1::timestamptz + interval '1 hour'";

/** Totals of the hour that begins at $1, from its rows. */
export const INSERT_HOUR = `${INSERT}
  select organization_id, case when grouping(key_id) = 0 then 'key_hour' when grouping(model) = 0 then 'hour' else 'workspace_hour' end,
    $1::timestamptz, ${GROUPED.join(', ')}, ${ofRows}
  from ${entered(OF_THE_HOUR)}
  group by grouping sets ((organization_id, ${OF_ROUTES.join(', ')}), (organization_id, ${OF_KEYS.join(', ')}),
    (organization_id, workspace_id))`;

/** Totals of the day that begins at $1, from those of its hours. */
export const INSERT_DAY = `${INSERT}
  select organization_id, replace(grain, 'hour', 'day'), $1::timestamptz, ${GROUPED.join(', ')}, ${ofTotals}
  from generation_totals
  where at >= $1::timestamptz and at < $1::timestamptz + interval '24 hours' and grain like '%hour'
  group by organization_id, grain, ${GROUPED.join(', ')}`;
