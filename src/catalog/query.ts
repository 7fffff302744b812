/**
 * Filters, sorting and paging of model lists. A filter without data in the catalog matches no model; a sort order
 * without data keeps the list's order.
 */
import { type Static, Type } from 'typebox';
import type { Price } from '../base/money.ts';
import { closed } from '../http/contract.ts';
import type { Catalog, Endpoint, LatestModel, Model } from './catalog.ts';
import type { ModelListView, ModelView } from './schema.ts';
import type { EndpointStatistics } from './statistics/index.ts';
import {
  contextOf,
  inputModalitiesOf,
  outputModalitiesOf,
  parametersOf,
  pricingOf,
  viewLatest,
  viewModel,
} from './view.ts';

const PAGE_SIZE = 500;
const DAY_MS = 86_400_000;

const list = (description: string) => Type.Optional(Type.String({ maxLength: 1_000, description }));
const number = (description: string, limits: { maximum?: number } = {}) =>
  Type.Optional(Type.Number({ minimum: 0, ...limits, description }));
const days = (description: string) => Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000_000, description }));
const NO_DATA = 'No data available; matches no model';

const OFFSET = Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }));
const LIMIT = Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, description: 'Default 500' }));
const OUTPUT = list('Comma-separated; models with one of these outputs, or `all`. Default `text`');

/** `latency-low-to-high` and similar. Benchmark data is not available, so those orders leave the list unchanged. */
const SORTS = [
  'most-popular',
  'top-weekly',
  'newest',
  'pricing-low-to-high',
  'pricing-high-to-low',
  'context-high-to-low',
  'throughput-high-to-low',
  'latency-low-to-high',
  'intelligence-high-to-low',
  'coding-high-to-low',
  'agentic-high-to-low',
  'design-arena-elo-high-to-low',
] as const;

/** Orders by usage, with the number of days that count. */
export const POPULARITY_DAYS: Readonly<Partial<Record<string, number>>> = { 'most-popular': 365, 'top-weekly': 7 };

const CATEGORIES = [
  'programming',
  'roleplay',
  'marketing',
  'marketing/seo',
  'technology',
  'science',
  'translation',
  'legal',
  'finance',
  'health',
  'trivia',
  'academia',
] as const;

/** Filters of the public API without data here; an unknown value is in no range. */
const INDICES = [
  'min_intelligence_index',
  'max_intelligence_index',
  'min_coding_index',
  'max_coding_index',
  'min_agentic_index',
  'max_agentic_index',
] as const;

/** How Google's clients ask for pages. */
export const googlePages = {
  pageSize: Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000, description: "For Google's clients" })),
  pageToken: Type.Optional(Type.String({ description: '`nextPageToken` of the page before' })),
};

export const ListModelsQuerySchema = Type.Object(
  {
    offset: OFFSET,
    limit: LIMIT,
    q: list('Part of the id or the name'),
    sort: Type.Optional(Type.Enum([...SORTS])),
    output_modalities: OUTPUT,
    input_modalities: list('Comma-separated; models that accept all of these inputs'),
    supported_parameters: list('Comma-separated; models that support all of them'),
    context: Type.Optional(Type.Integer({ minimum: 1, description: 'Minimum context length in tokens' })),
    min_price: number('USD per million prompt tokens; models without a known price never match'),
    max_price: number('USD per million prompt tokens'),
    min_output_price: number('USD per million completion tokens'),
    max_output_price: number('USD per million completion tokens'),
    arch: list('Comma-separated; tokenizers'),
    model_authors: list('Comma-separated; authors (the part of the id before the slash)'),
    providers: list('Comma-separated; slugs or names of providers, at least one of which offers the model'),
    zdr: Type.Optional(Type.Literal('true', { description: 'Models with an endpoint that has zero data retention' })),
    region: Type.Optional(Type.Union([Type.Literal('eu'), Type.Literal('us')])),
    min_age_days: days('Days since the release; models without a known date never match'),
    max_age_days: days('Days since the release'),
    min_tool_success_rate: number('Share of valid tool calls in the last day', { maximum: 1 }),
    max_tool_success_rate: number('Share of valid tool calls in the last day', { maximum: 1 }),
    use_rss: Type.Optional(Type.Boolean({ description: 'Return an RSS feed, newest first' })),
    use_rss_chat_links: Type.Optional(
      Type.Boolean({ description: 'Accepted without effect: there are no chat pages' }),
    ),
    category: Type.Optional(Type.Enum([...CATEGORIES], { description: NO_DATA })),
    distillable: Type.Optional(Type.Enum(['true', 'false'], { description: NO_DATA })),
    ...Object.fromEntries(INDICES.map((name) => [name, Type.Optional(Type.Number({ description: NO_DATA }))])),
    after_id: list('With `anthropic-version`: models after this one'),
    before_id: list('With `anthropic-version`: models before this one'),
    lifecycle: Type.Optional(
      Type.Array(Type.String(), { description: 'With `anthropic-version`: every model is `active`' }),
    ),
    ...googlePages,
  },
  closed,
);

export const UserModelsQuerySchema = Type.Object({ offset: OFFSET, limit: LIMIT, output_modalities: OUTPUT }, closed);

export const PageQuerySchema = Type.Object({ offset: OFFSET, limit: LIMIT }, closed);

export const CountQuerySchema = Type.Object({ output_modalities: OUTPUT }, closed);

export type ListModelsQuery = Static<typeof ListModelsQuerySchema>;

/** What filters need besides the models themselves. */
interface QueryContext {
  /** Wall time in ms. */
  now: number;
  statistics: EndpointStatistics | undefined;
  /** Usage per model, for sorting by popularity. */
  popularity?: ReadonlyMap<string, number> | undefined;
}

/** A row of the list: a model, the alias for the newest of a family, or a router model. */
export interface Row {
  id: string;
  model: Model;
  latest: LatestModel | null;
}

export function viewRow({ model, latest }: Row): ModelView {
  return latest === null ? viewModel(model) : viewLatest(latest);
}

/** Filters that match no model. */
const UNKNOWN = ['category', 'distillable', ...INDICES];

/** The models of a list: those of the catalog, or those that a caller may use. */
interface ListedModels extends Pick<Catalog, 'models' | 'latest'> {
  routers: readonly Model[];
}

export function select(catalog: ListedModels, query: ListModelsQuery, context: QueryContext): Row[] {
  if (UNKNOWN.some((name) => Object.hasOwn(query, name))) return [];
  const tests = filtersOf(query, context);
  const rows: Row[] = [
    ...catalog.models.map((model) => ({ id: model.id, model, latest: null })),
    ...catalog.latest.map((latest) => ({ id: latest.id, model: latest.target, latest })),
    ...catalog.routers.map((model) => ({ id: model.id, model, latest: null })),
  ];
  return sorted(
    rows.filter((row) => tests.every((test) => test(row.model, row.id))),
    query.sort,
    context,
  );
}

/** One page of the rows. `path` is the operation's own. */
export function page(rows: readonly Row[], query: ListModelsQuery, path: string): ModelListView {
  const { offset = 0, limit = PAGE_SIZE } = query;
  const shown = rows.slice(offset, offset + limit);
  const more = shown.length > 0 && offset + shown.length < rows.length;
  return {
    data: shown.map(viewRow),
    links: { next: more ? nextPage(path, query, offset + limit) : null },
    total_count: rows.length,
  };
}

function nextPage(path: string, query: ListModelsQuery, offset: number): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries({ ...query, offset })) parameters.set(name, String(value));
  return `${path}?${parameters}`;
}

type Test = (model: Model, id: string) => boolean;

function filtersOf(query: ListModelsQuery, context: QueryContext): Test[] {
  const wanted = words(query.output_modalities ?? 'text');
  const tests: Test[] = [];
  if (!wanted.includes('all')) {
    tests.push((model) => outputModalitiesOf(model).some((modality) => wanted.includes(modality)));
  }
  if (query.input_modalities) tests.push(allIn(words(query.input_modalities), inputModalitiesOf));
  if (query.supported_parameters) tests.push(allIn(words(query.supported_parameters), parametersOf));
  if (query.q) {
    const part = query.q.toLowerCase();
    tests.push((model, id) => id.toLowerCase().includes(part) || model.name.toLowerCase().includes(part));
  }
  const { context: tokens } = query;
  if (tokens !== undefined) tests.push((model) => (contextOf(model) ?? 0) >= tokens);
  tests.push(
    ...priceTests(query),
    ...originTests(query),
    ...ageTests(query, context.now),
    ...callTests(query, context),
  );
  return tests;
}

function allIn(wanted: readonly string[], of: (model: Model) => string[]): Test {
  return (model) => {
    const known = of(model);
    return wanted.every((word) => known.includes(word));
  };
}

function priceTests(query: ListModelsQuery): Test[] {
  const { min_price, max_price, min_output_price, max_output_price } = query;
  return [
    ...within(min_price, max_price, (model) => perMillion(pricingOf(model)?.prompt)),
    ...within(min_output_price, max_output_price, (model) => perMillion(pricingOf(model)?.completion)),
  ];
}

function originTests({ arch, model_authors, providers, zdr, region }: ListModelsQuery): Test[] {
  const tests: Test[] = [];
  if (arch) {
    const kinds = words(arch.toLowerCase());
    tests.push(({ facts }) => kinds.includes(facts?.tokenizer?.toLowerCase() ?? ''));
  }
  if (model_authors) {
    const authors = words(model_authors.toLowerCase());
    tests.push(({ id }) => authors.includes(id.slice(0, id.indexOf('/')).toLowerCase()));
  }
  if (providers) {
    const wanted = words(providers.toLowerCase());
    const matches = ({ provider }: Endpoint) =>
      wanted.includes(provider.id) || wanted.includes(provider.name.toLowerCase());
    tests.push(({ endpoints }) => endpoints.some(matches));
  }
  if (zdr) tests.push(({ endpoints }) => endpoints.some(({ dataPolicy }) => dataPolicy.zdr));
  if (region) tests.push(({ endpoints }) => endpoints.some((endpoint) => isIn(endpoint, region)));
  return tests;
}

/** `eu-west-1` and `europe` are in the region `eu`. */
function isIn({ region }: Endpoint, wanted: 'eu' | 'us'): boolean {
  const own = region?.toLowerCase() ?? '';
  return own === wanted || own.startsWith(`${wanted}-`) || (wanted === 'eu' && own.startsWith('europe'));
}

function ageTests({ min_age_days, max_age_days }: ListModelsQuery, now: number): Test[] {
  return within(min_age_days, max_age_days, ({ facts }) => {
    return facts?.created ? Math.floor((now - facts.created * 1000) / DAY_MS) : null;
  });
}

function callTests(query: ListModelsQuery, { statistics }: QueryContext): Test[] {
  return within(query.min_tool_success_rate, query.max_tool_success_rate, ({ endpoints }) => {
    let [calls, invalid] = [0, 0];
    for (const { id } of endpoints) {
      const figures = statistics?.of(id);
      calls += figures?.toolCalls1d ?? 0;
      invalid += figures?.invalidToolCalls1d ?? 0;
    }
    return calls === 0 ? null : 1 - invalid / calls;
  });
}

/** An unknown value is in no range. */
function within(least: number | undefined, most: number | undefined, of: (model: Model) => number | null): Test[] {
  if (least === undefined && most === undefined) return [];
  return [
    (model) => {
      const value = of(model);
      return value !== null && value >= (least ?? value) && value <= (most ?? value);
    },
  ];
}

function perMillion(price: Price | undefined): number | null {
  return price === undefined ? null : Number(price) / 1e12;
}

/** Stable sort. Unknown values are last in either direction. */
function sorted(rows: Row[], sort: ListModelsQuery['sort'], { statistics, popularity }: QueryContext): Row[] {
  if (sort === undefined) return rows;
  const best = (of: (endpoint: Endpoint) => number | null | undefined, pick: (...numbers: number[]) => number) => {
    return ({ endpoints }: Model) => {
      const known = endpoints.map(of).filter((value): value is number => typeof value === 'number');
      return known.length === 0 ? null : pick(...known);
    };
  };
  const used = ({ id }: Model) => popularity?.get(id) ?? null;
  const unknown = (): null => null;
  const keys: Record<(typeof SORTS)[number], [(model: Model) => number | null, 1 | -1]> = {
    'most-popular': [used, -1],
    'top-weekly': [used, -1],
    newest: [({ facts }) => facts?.created ?? null, -1],
    'pricing-low-to-high': [(model) => perMillion(pricingOf(model)?.prompt), 1],
    'pricing-high-to-low': [(model) => perMillion(pricingOf(model)?.prompt), -1],
    'context-high-to-low': [contextOf, -1],
    'throughput-high-to-low': [best(({ id }) => statistics?.of(id).throughput?.p50, Math.max), -1],
    'latency-low-to-high': [best(({ id }) => statistics?.of(id).latencyMs?.p50, Math.min), 1],
    'intelligence-high-to-low': [unknown, -1],
    'coding-high-to-low': [unknown, -1],
    'agentic-high-to-low': [unknown, -1],
    'design-arena-elo-high-to-low': [unknown, -1],
  };
  const [of, direction] = keys[sort];
  const last = direction === 1 ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY;
  const keyed = rows.map((row) => ({ row, key: of(row.model) ?? last }));
  return keyed.toSorted((a, b) => (a.key === b.key ? 0 : (a.key - b.key) * direction)).map(({ row }) => row);
}

function words(text: string): string[] {
  return text.split(',').flatMap((word) => (word.trim() === '' ? [] : [word.trim()]));
}
