/** The operations that show the catalog (wire/models.md). */
import { GatewayError } from '../base/errors.ts';
import type { Operation } from '../http/operation.ts';
import type { Catalog } from './catalog.ts';
import * as schema from './schema.ts';
import { listModels, viewEndpoints } from './view.ts';

/** @param catalog yields the current one: a reload replaces it */
export function catalogOperations<C>(catalog: () => Catalog): Operation<C>[] {
  return [
    {
      id: 'listModels',
      method: 'GET',
      path: '/models',
      summary: 'Models that are configured by name',
      tag: 'Models',
      access: 'any',
      query: schema.ListModelsQuerySchema,
      replies: { 200: { description: 'One page', schema: schema.ModelListSchema } },
      handle(exchange) {
        const { models } = catalog();
        exchange.reply(200, listModels(models, exchange.query as schema.ListModelsQuery, '/api/v1/models'));
      },
    },
    {
      id: 'listEndpoints',
      method: 'GET',
      path: '/models/{author}/{slug}/endpoints',
      summary: 'One model and the endpoints that serve it',
      tag: 'Models',
      access: 'any',
      params: schema.ModelParamsSchema,
      replies: { 200: { description: 'The model and its endpoints', schema: schema.ModelEndpointsSchema } },
      handle(exchange) {
        const model = catalog().find(`${exchange.params['author']}/${exchange.params['slug']}`);
        if (!model) throw new GatewayError('not_found', 'there is no such model');
        exchange.reply(200, viewEndpoints(model));
      },
    },
  ];
}
