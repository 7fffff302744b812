/** Operations that show the catalog. Clients that send `anthropic-version` receive Anthropic's response shapes. */
import type { IncomingHttpHeaders } from 'node:http';
import { Type } from 'typebox';
import { GatewayError } from '../base/errors.ts';
import { googleFailure, isGoogle, messages } from '../formats/index.ts';
import { ANY_KEY } from '../http/access-rule.ts';
import { ok } from '../http/contract.ts';
import type { ErrorContext, Exchange, Operation } from '../http/operation.ts';
import { publicUrl } from '../http/public-url.ts';
import type { Catalog, Endpoint, Model } from './catalog.ts';
import { feedOf } from './feed.ts';
import { GoogleModel, GoogleModelList, googleModelOperations, pageForGoogle, viewForGoogle } from './google-models.ts';
import { imageOperations } from './images/index.ts';
import {
  AnthropicModelListSchema,
  AnthropicModelSchema,
  OpenAiModelSchema,
  pageForAnthropic,
  viewForAnthropic,
  viewForOpenAi,
} from './other-clients.ts';
import {
  CountQuerySchema,
  type ListModelsQuery,
  ListModelsQuerySchema,
  PageQuerySchema,
  POPULARITY_DAYS,
  page,
  type Row,
  select,
  UserModelsQuerySchema,
  viewRow,
} from './query.ts';
import { type ListedRouter, routerModel } from './routers.ts';
import * as schema from './schema.ts';
import type { EndpointStatistics } from './statistics/index.ts';
import { viewEndpoint, viewEndpoints, viewProviders } from './view.ts';

interface CatalogOperationParts<C> {
  /** The current catalog, which a reload replaces. */
  catalog(): Catalog;
  /** Absent: no statistics. */
  statistics?(): EndpointStatistics | undefined;
  /**
   * Whether the caller's policy permits the endpoint, or permits it for requests with zero data retention; absent:
   * always. Used by GET /models/user and /endpoints/zdr.
   */
  permits?(caller: C, endpoint: Endpoint, zdr: boolean): boolean;
  /** Router models; absent if the gateway has none. */
  routers?(): readonly ListedRouter[];
  /** Tokens per model that the caller's organization used in the last days, including today; absent: unknown. */
  popularity?(caller: C, days: number): Promise<ReadonlyMap<string, number>>;
}

const TAG = 'Models';

export function catalogOperations<C>(parts: CatalogOperationParts<C>): Operation<C>[] {
  return [
    ...listOperations(parts),
    ...modelOperations(parts),
    ...imageOperations<C>(parts.catalog),
    ...googleModelOperations<C>({
      rows: (exchange) => rowsOf(parts, exchange, parts.catalog(), { output_modalities: 'all' }),
      row: (name) => rowOf(parts, name),
    }),
    {
      id: 'listZdrEndpoints',
      method: 'GET',
      path: '/endpoints/zdr',
      summary: 'List endpoints with zero data retention that the caller may use',
      tag: TAG,
      access: ANY_KEY,
      replies: ok('The endpoints', schema.EndpointListSchema),
      handle(exchange) {
        const data = parts
          .catalog()
          .models.flatMap((model) =>
            model.endpoints
              .filter((each) => each.dataPolicy.zdr && (parts.permits?.(exchange.caller, each, true) ?? true))
              .map((endpoint) => viewEndpoint(model, endpoint, parts.statistics?.())),
          );
        exchange.reply(200, { data });
      },
    },
    {
      id: 'listProviders',
      method: 'GET',
      path: '/providers',
      summary: 'List the configured providers',
      tag: TAG,
      access: ANY_KEY,
      replies: ok('The providers', schema.ProviderListSchema),
      handle: (exchange) => exchange.reply(200, viewProviders(parts.catalog().providers)),
    },
  ];
}

function listOperations<C>(parts: CatalogOperationParts<C>): Operation<C>[] {
  return [
    listModels(parts),
    {
      id: 'countModels',
      method: 'GET',
      path: '/models/count',
      summary: 'Count the listed models',
      tag: TAG,
      access: ANY_KEY,
      query: CountQuerySchema,
      replies: ok('The number', schema.ModelsCountSchema),
      handle(exchange) {
        const rows = rowsOf(parts, exchange, parts.catalog(), exchange.query as ListModelsQuery);
        exchange.reply(200, { data: { count: rows.length } });
      },
    },
    {
      id: 'listUserModels',
      method: 'GET',
      path: '/models/user',
      summary: 'List the models that the key and account settings permit',
      tag: TAG,
      access: ANY_KEY,
      query: UserModelsQuerySchema,
      replies: ok('One page', schema.ModelListSchema),
      handle(exchange) {
        const query = exchange.query as ListModelsQuery;
        const rows = rowsOf(parts, exchange, permitted(parts, exchange.caller), query);
        exchange.reply(200, page(rows, query, '/api/v1/models/user'));
      },
    },
    {
      id: 'listEmbeddingModels',
      method: 'GET',
      path: '/embeddings/models',
      summary: 'List embedding models',
      tag: TAG,
      access: ANY_KEY,
      query: PageQuerySchema,
      replies: ok('One page', schema.ModelListSchema),
      handle(exchange) {
        const query = exchange.query as ListModelsQuery;
        const rows = rowsOf(parts, exchange, parts.catalog(), { output_modalities: 'embeddings' });
        exchange.reply(200, page(rows, query, '/api/v1/embeddings/models'));
      },
    },
  ];
}

function listModels<C>(parts: CatalogOperationParts<C>): Operation<C> {
  return {
    id: 'listModels',
    method: 'GET',
    path: '/models',
    summary: 'List the available models',
    tag: TAG,
    access: ANY_KEY,
    query: ListModelsQuerySchema,
    replies: {
      200: {
        description:
          'One page; in the Anthropic format for requests with `anthropic-version`, in that of Google with `x-goog-api-key`; an RSS feed with `use_rss`',
        schema: Type.Union([schema.ModelListSchema, AnthropicModelListSchema, GoogleModelList]),
        texts: ['application/rss+xml'],
      },
    },
    async handle(exchange) {
      const query = exchange.query as ListModelsQuery;
      const days = POPULARITY_DAYS[query.sort ?? ''];
      const popularity = days === undefined ? undefined : await parts.popularity?.(exchange.caller, days);
      const usual: ListModelsQuery = isGoogle(exchange.headers) ? { output_modalities: 'all' } : {};
      const effective: ListModelsQuery = query.use_rss ? { sort: 'newest', ...query } : { ...usual, ...query };
      const rows = rowsOf(parts, exchange, parts.catalog(), effective, popularity);
      if (query.use_rss) replyFeed(exchange, rows);
      else if (isAnthropic(exchange.headers)) exchange.reply(200, pageForAnthropic(rows, query));
      else if (isGoogle(exchange.headers)) exchange.reply(200, pageForGoogle(rows, query));
      else exchange.reply(200, page(rows, query, '/api/v1/models'));
    },
    encodeError,
  };
}

function rowsOf<C>(
  parts: CatalogOperationParts<C>,
  exchange: Exchange<C>,
  { models, latest }: Pick<Catalog, 'models' | 'latest'>,
  query: ListModelsQuery,
  popularity?: ReadonlyMap<string, number>,
) {
  const routers = (parts.routers?.() ?? []).flatMap((router) => routerModel(router, models) ?? []);
  return select({ models, latest, routers }, query, {
    now: exchange.startedAt,
    statistics: parts.statistics?.(),
    popularity,
  });
}

function modelOperations<C>(parts: CatalogOperationParts<C>): Operation<C>[] {
  return [
    {
      id: 'getModel',
      method: 'GET',
      path: '/model/{author}/{slug}',
      summary: 'Get one model',
      tag: TAG,
      access: ANY_KEY,
      params: schema.ModelParamsSchema,
      replies: ok('The model', schema.ModelResponseSchema),
      handle: (exchange) => exchange.reply(200, { data: viewRow(rowOf(parts, namedIn(exchange))) }),
    },
    {
      id: 'retrieveModel',
      method: 'GET',
      path: '/models/{model}',
      summary: 'Get one model by its whole name in one path segment, for vendor SDKs',
      tag: TAG,
      access: ANY_KEY,
      params: Type.Object({ model: Type.String() }),
      replies: {
        200: {
          description: 'The model; in the Anthropic format for requests with `anthropic-version`',
          schema: Type.Union([OpenAiModelSchema, AnthropicModelSchema, GoogleModel]),
        },
      },
      handle(exchange) {
        const row = rowOf(parts, exchange.params['model']!);
        if (isAnthropic(exchange.headers)) exchange.reply(200, viewForAnthropic(row.id, row.model));
        else exchange.reply(200, isGoogle(exchange.headers) ? viewForGoogle(row) : viewForOpenAi(row));
      },
      encodeError,
    },
    {
      id: 'listEndpoints',
      method: 'GET',
      path: '/models/{author}/{slug}/endpoints',
      summary: 'Get one model and the endpoints that serve it',
      tag: TAG,
      access: ANY_KEY,
      params: schema.ModelParamsSchema,
      replies: ok('The model and its endpoints', schema.ModelEndpointsSchema),
      handle(exchange) {
        const { model } = rowOf(parts, namedIn(exchange));
        exchange.reply(200, viewEndpoints(model, parts.statistics?.()));
      },
    },
  ];
}

function namedIn({ params }: Pick<Exchange, 'params'>): string {
  return `${params['author']}/${params['slug']}`;
}

/** Safe for any key, because every key can list all models. */
function suggestedModel(catalog: Catalog, name: string): string {
  const near = catalog.near(name);
  return near === undefined ? '' : `; did you mean ${near}?`;
}

/** @throws GatewayError 404 */
function rowOf<C>(parts: CatalogOperationParts<C>, name: string): Row {
  const catalog = parts.catalog();
  const router = parts.routers?.().find(({ id }) => id === name);
  const model = catalog.find(name) ?? (router && routerModel(router, catalog.models));
  if (model === undefined || model.endpoints.length === 0)
    throw new GatewayError('not_found', `there is no such model${suggestedModel(catalog, name)}`);
  const latest = model.latest
    ? catalog.latest.find(({ id, target }) => target.id === model.id && name.endsWith(id))
    : undefined;
  return { id: latest?.id ?? model.id, model, latest: latest ?? null };
}

/** The models with only the endpoints that the caller may use, without models that have none. */
function permitted<C>(parts: CatalogOperationParts<C>, caller: C): Pick<Catalog, 'models' | 'latest'> {
  const catalog = parts.catalog();
  const { permits } = parts;
  if (permits === undefined) return catalog;
  const left = new Map<string, Model>();
  for (const model of catalog.models) {
    const endpoints = model.endpoints.filter((endpoint) => permits(caller, endpoint, false));
    if (endpoints.length > 0) left.set(model.id, { ...model, endpoints });
  }
  const latest = catalog.latest.flatMap((row) => {
    const target = left.get(row.target.id);
    return target === undefined ? [] : [{ ...row, target }];
  });
  return { models: [...left.values()], latest };
}

function isAnthropic(headers: IncomingHttpHeaders): boolean {
  return headers['anthropic-version'] !== undefined;
}

function encodeError(error: GatewayError, context: ErrorContext): unknown {
  if (isAnthropic(context.headers)) return messages.encodeFailure(error, { generationId: null });
  return googleFailure(error, context);
}

function replyFeed<C>(exchange: Exchange<C>, rows: readonly Row[]): void {
  const { response } = exchange;
  response.writeHead(200, { 'Content-Type': 'application/rss+xml; charset=utf-8' });
  response.end(feedOf(rows, publicUrl(exchange)));
}
