/** Parses a query: looks up every name, and converts every value to the type of its dimension. No I/O. */
import { invalidField } from '../base/errors.ts';
import { readTimestamp } from '../base/timestamp.ts';
import {
  DIMENSIONS,
  type DimensionName,
  GRANULARITIES,
  type GranularityName,
  METRICS,
  type MetricName,
  OPERATORS,
  type OperatorName,
} from './names.ts';
import type { FilterBody, QueryBody } from './schema.ts';

type FilterValue = string | number | boolean;

export interface Filter {
  field: DimensionName;
  operator: OperatorName;
  /** A single value for scalar operators. */
  values: readonly FilterValue[];
  includeUnset: boolean;
}

type OrderField = DimensionName | MetricName | 'date';

export interface AnalyticsQuery {
  /** Wall times; `until` is exclusive. */
  from: Date;
  until: Date;
  granularity: GranularityName | undefined;
  dimensions: readonly DimensionName[];
  metrics: readonly MetricName[];
  filters: readonly Filter[];
  orderBy: { field: OrderField; descending: boolean };
  limit: number;
  groupLimit: number | undefined;
}

const DAY_MS = 86_400_000;
const DEFAULT_DAYS = 30;
const DEFAULT_LIMIT = 1_000;
const MAX_LIMIT = 10_000;

/** Throws GatewayError 400 that names the field, and lists the accepted names if one is unknown. */
export function readQuery(body: QueryBody, nowMs: number): AnalyticsQuery {
  for (const name of ['classifier_dimensions', 'classifier_filters'] as const) {
    if (body[name] !== undefined) throw invalidField(name, 'is not supported: Gatehouse has no classifiers');
  }
  const metrics = names(METRICS, 'metrics', body.metrics);
  const dimensions = names(DIMENSIONS, 'dimensions', body.dimensions ?? []);
  const granularity =
    body.granularity === undefined ? undefined : oneOf(GRANULARITIES, 'granularity', body.granularity);
  const timeSeries = granularity !== undefined && dimensions.length > 0;
  return {
    ...readRange(body, nowMs),
    granularity,
    dimensions,
    metrics,
    filters: (body.filters ?? []).map((filter, at) => readFilter(`filters[${at}]`, filter)),
    orderBy: readOrder(body, metrics, dimensions, granularity),
    // A time series must not be cut off because it has many groups.
    limit: body.limit ?? (timeSeries ? MAX_LIMIT : DEFAULT_LIMIT),
    groupLimit: dimensions.length > 0 ? body.group_limit : undefined,
  };
}

function readRange({ time_range: range }: QueryBody, nowMs: number): { from: Date; until: Date } {
  if (range === undefined) return { from: new Date(nowMs - DEFAULT_DAYS * DAY_MS), until: new Date(nowMs) };
  const from = readTimestamp('time_range.start', range.start);
  const until = readTimestamp('time_range.end', range.end);
  if (from >= until) throw invalidField('time_range.end', 'must be later than time_range.start');
  return { from, until };
}

function readOrder(
  { order_by: order }: QueryBody,
  metrics: readonly MetricName[],
  dimensions: readonly DimensionName[],
  granularity: GranularityName | undefined,
): AnalyticsQuery['orderBy'] {
  if (order === undefined) {
    return granularity === undefined ? { field: metrics[0]!, descending: true } : { field: 'date', descending: false };
  }
  const fields = [...metrics, ...dimensions, 'request_count', ...(granularity === undefined ? [] : ['date'])];
  if (!fields.includes(order.field)) {
    throw invalidField('order_by.field', `must be one of ${[...new Set(fields)].join(', ')}`);
  }
  return { field: order.field as OrderField, descending: order.direction === 'desc' };
}

function readFilter(path: string, filter: FilterBody): Filter {
  const field = oneOf(DIMENSIONS, `${path}.field`, filter.field);
  const operator = oneOf(OPERATORS, `${path}.operator`, filter.operator);
  const takesArray = OPERATORS[operator] === 'array';
  if (takesArray !== Array.isArray(filter.value)) {
    throw invalidField(`${path}.value`, `must be ${takesArray ? 'an array' : 'one value'} with ${operator}`);
  }
  if (filter.include_unset !== undefined && !takesArray) {
    throw invalidField(`${path}.include_unset`, 'is only valid with in and not_in');
  }
  const ordered = ['gt', 'gte', 'lt', 'lte'].includes(operator);
  const kind = DIMENSIONS[field].values;
  if (ordered && (kind === 'id' || kind === 'boolean')) {
    throw invalidField(`${path}.operator`, `must be eq, neq, in or not_in: ${field} has no order`);
  }
  const values = Array.isArray(filter.value)
    ? filter.value.map((value, at) => readValue(`${path}.value[${at}]`, field, value))
    : [readValue(`${path}.value`, field, filter.value)];
  return { field, operator, values, includeUnset: filter.include_unset === true };
}

function readValue(path: string, field: DimensionName, value: string | number): FilterValue {
  switch (DIMENSIONS[field].values) {
    case 'boolean':
      if (value === 'true' || value === 'false') return value === 'true';
      throw invalidField(path, 'must be "true" or "false"');
    case 'integer': {
      const number = typeof value === 'number' ? value : /^-?\d{1,9}$/.test(value) ? Number(value) : Number.NaN;
      if (Number.isInteger(number) && Math.abs(number) < 2 ** 31) return number;
      throw invalidField(path, 'must be an integer');
    }
    default:
      return String(value);
  }
}

function names<T extends object>(known: T, path: string, given: readonly string[]): Extract<keyof T, string>[] {
  const found = given.map((name, at) => oneOf(known, `${path}[${at}]`, name));
  const twice = found.findIndex((name, at) => found.indexOf(name) < at);
  if (twice !== -1) throw invalidField(`${path}[${twice}]`, `"${found[twice]}" is listed twice`);
  return found;
}

function oneOf<T extends object>(known: T, path: string, name: string): Extract<keyof T, string> {
  if (Object.hasOwn(known, name)) return name as Extract<keyof T, string>;
  throw invalidField(path, `must be one of ${Object.keys(known).join(', ')}`);
}
