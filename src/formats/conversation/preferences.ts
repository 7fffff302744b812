/**
 * Routing preferences of a request (`provider`), the same in every format: schema, types, and the checks whose schema
 * errors would be unclear. `inference/routing` implements them.
 */
import Type, { type TSchema } from 'typebox';
import { invalidField } from '../../base/errors.ts';
import { parsePrice } from '../../base/money.ts';
import { isFields } from './fields.ts';

const SORT_METRICS = ['price', 'throughput', 'latency', 'exacto'] as const;
export type SortMetric = (typeof SORT_METRICS)[number];

const PARTITIONS = ['model', 'none'] as const;

const QUANTIZATIONS = [
  'int4',
  'int8',
  'fp4',
  'mxfp4',
  'nvfp4',
  'fp6',
  'fp8',
  'mxfp8',
  'fp16',
  'bf16',
  'fp32',
  'unknown',
] as const;

export const PERCENTILES = ['p50', 'p75', 'p90', 'p99'] as const;
/** A plain number applies to the median. */
export type Cutoffs = number | Partial<Record<(typeof PERCENTILES)[number], number | null>>;

const PRICE_LIMITS = ['prompt', 'completion', 'request', 'image', 'audio'] as const;
/** USD: `prompt` and `completion` per million tokens, the others per unit. */
export type MaxPrice = Partial<Record<(typeof PRICE_LIMITS)[number], string | number | null>>;

export interface ProviderPreferences {
  order?: string[] | null;
  only?: string[] | null;
  ignore?: string[] | null;
  allow_fallbacks?: boolean | null;
  require_parameters?: boolean | null;
  data_collection?: 'allow' | 'deny' | null;
  zdr?: boolean | null;
  quantizations?: string[] | null;
  max_price?: MaxPrice | null;
  sort?: SortMetric | { by?: SortMetric | null; partition?: (typeof PARTITIONS)[number] | null } | null;
  /** Tokens per second. */
  preferred_min_throughput?: Cutoffs | null;
  /** Seconds. */
  preferred_max_latency?: Cutoffs | null;
}

const words = (values: readonly string[]) => ({ enum: [...values, null] });
const optional = (schema: object): TSchema => Type.Optional(Type.Unsafe(schema));
const names = () => optional({ type: ['array', 'null'], items: { type: 'string', minLength: 1 }, maxItems: 200 });
const flag = () => optional({ type: ['boolean', 'null'] });

/** Members with several possible types are checked by `checkPreferences`, so that each error has its own path. */
export const PreferencesSchema: TSchema = Type.Object(
  {
    order: names(),
    only: names(),
    ignore: names(),
    allow_fallbacks: flag(),
    require_parameters: flag(),
    data_collection: optional(words(['allow', 'deny'])),
    zdr: flag(),
    quantizations: optional({ type: ['array', 'null'], items: { enum: [...QUANTIZATIONS] } }),
    max_price: optional({ type: ['object', 'null'], description: 'USD: prompt and completion per million tokens' }),
    sort: optional({ type: ['string', 'object', 'null'], description: 'A metric, or {by, partition}' }),
    preferred_min_throughput: optional({ type: ['number', 'object', 'null'], description: 'Tokens per second' }),
    preferred_max_latency: optional({ type: ['number', 'object', 'null'], description: 'Seconds' }),
  },
  { $id: 'ProviderPreferences' },
);

/**
 * @param provider the member `provider`, already validated against the schema
 * @throws GatewayError 400 with the path of the offending member
 */
export function checkPreferences(provider: unknown): void {
  if (!isFields(provider)) return;
  checkSort(provider['sort']);
  checkPrices(provider['max_price']);
  checkCutoffs(provider['preferred_min_throughput'], 'provider.preferred_min_throughput');
  checkCutoffs(provider['preferred_max_latency'], 'provider.preferred_max_latency');
  if (provider['enforce_distillable_text'] === true) {
    throw invalidField(
      'provider.enforce_distillable_text',
      'cannot be kept: the catalog does not know what authors allow to be distilled',
    );
  }
}

function checkSort(sort: unknown): void {
  if (typeof sort === 'string') oneOf(SORT_METRICS, sort, 'provider.sort');
  if (!isFields(sort)) return;
  oneOf(SORT_METRICS, sort['by'], 'provider.sort.by');
  oneOf(PARTITIONS, sort['partition'], 'provider.sort.partition');
}

function oneOf(values: readonly string[], value: unknown, path: string): void {
  if (value === undefined || value === null) return;
  if (!values.includes(value as string)) throw invalidField(path, `must be one of ${values.join(', ')}`);
}

function checkPrices(limits: unknown): void {
  if (!isFields(limits)) return;
  for (const name of Object.keys(limits)) {
    oneOf(PRICE_LIMITS, name, 'provider.max_price');
    const value = limits[name];
    if (value === null) continue;
    const path = `provider.max_price.${name}`;
    if (typeof value !== 'string' && typeof value !== 'number') throw invalidField(path, 'must be an amount of USD');
    try {
      parsePrice(String(value));
    } catch {
      throw invalidField(path, 'must be an amount of USD, not negative');
    }
  }
}

function checkCutoffs(cutoffs: unknown, path: string): void {
  if (typeof cutoffs === 'number' && !(cutoffs >= 0)) throw invalidField(path, 'must not be negative');
  if (!isFields(cutoffs)) return;
  for (const [name, value] of Object.entries(cutoffs)) {
    oneOf(PERCENTILES, name, path);
    if (value !== null && !(typeof value === 'number' && value >= 0)) {
      throw invalidField(`${path}.${name}`, 'must be a number, not negative');
    }
  }
}

/** Reads the members the gateway supports and ignores others. `route` is the deprecated way to request a partition. */
export function readPreferences(provider: unknown, route: unknown): ProviderPreferences {
  const given: ProviderPreferences = isFields(provider) ? { ...provider } : {};
  if (typeof route !== 'string') return given;
  const sort = typeof given.sort === 'string' ? { by: given.sort } : (given.sort ?? {});
  return { ...given, sort: { partition: route === 'sort' ? 'none' : 'model', ...sort } };
}
