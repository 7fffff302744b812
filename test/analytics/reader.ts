/** What POST /analytics/query must answer, computed from the rows in memory by a reader that knows nothing of SQL. */
import type { Generation } from '../../src/spend/index.ts';

export interface Asked {
  metrics: string[];
  dimensions?: string[];
  granularity?: string;
  time_range: { start: string; end: string };
  filters?: { field: string; operator: string; value: unknown; include_unset?: boolean }[];
  order_by?: { field: string; direction: string };
  limit?: number;
  group_limit?: number;
}

export interface KnownKey {
  hash: string;
  label: string;
  userId: string | null;
}

export type Row = Record<string, string | number | boolean | null>;
type Value = string | number | boolean | null;

/** By id. */
export type Keys = ReadonlyMap<string, KnownKey>;

export function expectedAnswer(asked: Asked, rows: readonly Generation[], keys: Keys): { data: Row[]; total: number } {
  const from = Date.parse(asked.time_range.start);
  const until = Date.parse(asked.time_range.end);
  const dimensions = asked.dimensions ?? [];
  const kept = rows.filter(
    (row) =>
      row.createdAt >= from &&
      row.createdAt < until &&
      (asked.filters ?? []).every((filter) => fulfills(filter, row, keys)),
  );
  const groups = new Map<string, Generation[]>();
  if (dimensions.length === 0 && asked.granularity === undefined) groups.set('all', []);
  for (const row of kept) {
    const values = dimensions.map((name) => groupValue(name, row, keys));
    const date = asked.granularity === undefined ? null : bucket(asked.granularity, row.createdAt);
    const name = dimensions.length === 0 && date === null ? 'all' : JSON.stringify([date, ...values]);
    groups.set(name, [...(groups.get(name) ?? []), row]);
  }
  const made = [...groups.values()].map((members) => {
    const [one] = members;
    const shown: Row = {};
    if (asked.granularity !== undefined) shown['date'] = bucket(asked.granularity, one!.createdAt);
    for (const name of dimensions) shown[name] = shownOf(name, one!, keys);
    for (const name of asked.metrics) shown[name] = (readingOf(name, asked) ?? METRICS[name]!)(members);
    return { shown, requests: members.length, values: dimensions.map((name) => one && groupValue(name, one, keys)) };
  });
  const order = asked.order_by ?? {
    field: asked.granularity === undefined ? asked.metrics[0]! : 'date',
    direction: asked.granularity === undefined ? 'desc' : 'asc',
  };
  made.sort((a, b) => {
    const rank = (row: typeof a) => (order.field in row.shown ? row.shown[order.field]! : row.requests);
    const first = compare(rank(a), rank(b), order.direction === 'desc');
    if (first !== 0) return first;
    const date = compare(a.shown['date'] ?? null, b.shown['date'] ?? null, false);
    if (date !== 0) return date;
    for (const [at, name] of dimensions.entries()) {
      const shown = compare(a.shown[name]!, b.shown[name]!, false);
      if (shown !== 0) return shown;
      const value = compare(a.values[at] as Value, b.values[at] as Value, false);
      if (value !== 0) return value;
    }
    return 0;
  });
  const perGroup = new Map<string, number>();
  const limited = made.filter(({ values }) => {
    const name = JSON.stringify(values);
    const place = (perGroup.get(name) ?? 0) + 1;
    perGroup.set(name, place);
    return dimensions.length === 0 || place <= (asked.group_limit ?? Number.POSITIVE_INFINITY);
  });
  const data = limited.slice(0, asked.limit ?? 10_000).map(({ shown }) => shown);
  return { data, total: made.length };
}

function compare(a: Value, b: Value, descending: boolean): number {
  if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1;
  const order =
    typeof a === 'string' ? Buffer.compare(Buffer.from(a), Buffer.from(String(b))) : Math.sign(Number(a) - Number(b));
  return descending ? -order : order;
}

function bucket(granularity: string, ms: number): string {
  const date = new Date(ms);
  date.setUTCSeconds(0, 0);
  if (granularity === 'minute') return date.toISOString();
  date.setUTCMinutes(0);
  if (granularity === 'hour') return date.toISOString();
  date.setUTCHours(0);
  if (granularity === 'week') date.setUTCDate(date.getUTCDate() - ((date.getUTCDay() + 6) % 7));
  if (granularity === 'month') date.setUTCDate(1);
  return date.toISOString();
}

/** What distinguishes groups. */
function groupValue(name: string, row: Generation, keys: Keys): Value {
  switch (name) {
    case 'model':
      return row.model;
    case 'provider':
      return row.providerName;
    case 'endpoint':
      return row.endpointId;
    case 'api_key_id':
      return row.keyId;
    case 'user':
      return keys.get(row.keyId)?.userId ?? null;
    case 'workspace':
      return row.workspaceId;
    case 'origin':
      return row.origin === '' ? null : row.origin;
    case 'app_title':
      return row.title;
    case 'external_user':
      return row.externalUser;
    case 'session':
      return row.sessionId;
    case 'api_type':
      return row.apiType;
    case 'data_region':
      return row.dataRegion;
    case 'status':
      return row.status;
    case 'error_type':
      return row.error?.type ?? null;
    case 'finish_reason':
      return row.finishReason;
    case 'service_tier':
      return row.serviceTier;
    case 'streamed':
      return row.streamed;
    case 'is_byok':
      return row.isByok;
    default:
      throw new Error(name);
  }
}

function shownOf(name: string, row: Generation, keys: Keys): Value {
  return name === 'api_key_id' ? keys.get(row.keyId)!.label : groupValue(name, row, keys);
}

function fulfills(filter: NonNullable<Asked['filters']>[number], row: Generation, keys: Keys): boolean {
  const value = groupValue(filter.field, row, keys);
  if (value === null) return filter.include_unset === true;
  const given = (Array.isArray(filter.value) ? filter.value : [filter.value]).map((each) => {
    if (filter.field === 'api_key_id') return [...keys].find(([, key]) => key.hash === each)?.[0] ?? 'nobody';
    if (typeof value === 'boolean') return each === 'true';
    return each as Value;
  });
  const order = compare(value, given[0]!, false);
  switch (filter.operator) {
    case 'eq':
      return value === given[0];
    case 'neq':
      return value !== given[0];
    case 'in':
      return given.includes(value);
    case 'not_in':
      return !given.includes(value);
    case 'gt':
      return order > 0;
    case 'gte':
      return order >= 0;
    case 'lt':
      return order < 0;
    default:
      return order <= 0;
  }
}

type Reading = (rows: Generation[]) => number | null;

const total = (rows: Generation[], of: (row: Generation) => number) => rows.reduce((sum, row) => sum + of(row), 0);
const prompt = ({ usage: u }: Generation) => (u === null ? 0 : u.input + u.cacheRead + u.cacheWrite5m + u.cacheWrite1h);
const usd = (of: (row: Generation) => bigint | null): Reading => {
  return (rows) => Number(rows.reduce((sum, row) => sum + (of(row) ?? 0n), 0n)) / 1e9;
};
const share = (part: number, whole: number) => (whole === 0 ? null : part / whole);
const failed = (row: Generation) => row.error !== null || (row.status ?? 0) >= 400;
const known = (rows: Generation[], of: (row: Generation) => number | null) =>
  rows.map(of).filter((value) => value !== null);
const mean = (values: number[]) =>
  share(
    values.reduce((a, b) => a + b, 0),
    values.length,
  );

const SHARES: Readonly<Record<string, number>> = { latency_p50: 0.5, latency_p95: 0.95, latency_p99: 0.99 };
const ROUTES = ['model', 'provider', 'endpoint', 'workspace', 'api_type', 'status', 'error_type'];
const KEYS = ['api_key_id', 'user', 'workspace'];
const HOUR_MS = 3_600_000;

/** Percentiles are those of a histogram where totals by hour can answer. */
function readingOf(metric: string, asked: Asked): Reading | undefined {
  const share = SHARES[metric];
  const used = [...(asked.dimensions ?? []), ...(asked.filters ?? []).map(({ field }) => field)];
  const first = Math.ceil(Date.parse(asked.time_range.start) / HOUR_MS);
  const isSummed =
    asked.granularity !== 'minute' &&
    first < Math.floor(Date.parse(asked.time_range.end) / HOUR_MS) &&
    ((used.every((name) => ROUTES.includes(name)) && !asked.metrics.includes('active_keys')) ||
      used.every((name) => KEYS.includes(name)));
  return share !== undefined && isSummed ? percentile(share, spreadInBuckets) : undefined;
}

/** Each value is replaced by its place in its bucket: eight for each doubling from 8 ms to 2^19 ms. */
function spreadInBuckets(values: readonly number[]): number[] {
  const bound = (at: number) => 8 * 2 ** (at / 8);
  const bucketOf = (value: number) => {
    let at = 0;
    while (at <= 128 && value >= bound(at)) at += 1;
    return at;
  };
  const buckets = Map.groupBy(values, bucketOf);
  return values.map((value, at) => {
    const bucket = bucketOf(value);
    const all = buckets.get(bucket)!;
    const place = (at - values.indexOf(all[0]!) + 0.5) / all.length;
    if (bucket === 0) return bound(0) * place;
    return bucket > 128 ? bound(128) : bound(bucket - 1) * (bound(bucket) / bound(bucket - 1)) ** place;
  });
}

/** @param read gets the values in ascending order */
function percentile(at: number, read = (values: number[]) => values): Reading {
  return (rows) => {
    const values = read(known(rows, (row) => row.latencyMs).sort((a, b) => a - b));
    if (values.length === 0) return null;
    const place = at * (values.length - 1);
    const low = values[Math.floor(place)]!;
    return low + (values[Math.ceil(place)]! - low) * (place - Math.floor(place));
  };
}

export const METRICS: Record<string, Reading> = {
  request_count: (rows) => rows.length,
  error_count: (rows) => rows.filter(failed).length,
  cancelled_count: (rows) => rows.filter((row) => row.cancelled).length,
  response_cache_hits: (rows) => rows.filter((row) => row.responseCacheSourceId !== null).length,
  active_keys: (rows) => new Set(rows.map((row) => row.keyId)).size,
  tokens_total: (rows) => total(rows, (row) => prompt(row) + (row.usage?.output ?? 0)),
  tokens_prompt: (rows) => total(rows, prompt),
  tokens_completion: (rows) => total(rows, (row) => row.usage?.output ?? 0),
  reasoning_tokens: (rows) => total(rows, (row) => row.usage?.reasoning ?? 0),
  cached_tokens: (rows) => total(rows, (row) => row.usage?.cacheRead ?? 0),
  cache_write_tokens: (rows) => total(rows, ({ usage }) => (usage ? usage.cacheWrite5m + usage.cacheWrite1h : 0)),
  total_usage: usd((row) => row.costNano),
  usage_byok: usd((row) => row.byokNano),
  usage_upstream: usd((row) => row.upstreamCostNano),
  usage_cache: usd((row) => row.cacheDiscountNano),
  cache_hit_rate: (rows) =>
    share(
      total(rows, (row) => row.usage?.cacheRead ?? 0),
      total(rows, prompt),
    ),
  error_rate: (rows) => share(rows.filter(failed).length, rows.length),
  latency_avg: (rows) => mean(known(rows, (row) => row.latencyMs)),
  latency_p50: percentile(SHARES['latency_p50']!),
  latency_p95: percentile(SHARES['latency_p95']!),
  latency_p99: percentile(SHARES['latency_p99']!),
  generation_time_avg: (rows) => mean(known(rows, (row) => row.generationMs)),
  throughput: (rows) => {
    const timed = rows.filter((row) => (row.generationMs ?? 0) > 0 && row.usage !== null);
    const all = rows.filter((row) => (row.generationMs ?? 0) > 0);
    if (timed.length === 0) return null;
    return (1000 * total(timed, (row) => row.usage!.output)) / total(all, (row) => row.generationMs!);
  },
};
