/** Operations that list image models and their endpoints. */
import { GatewayError } from '../../base/errors.ts';
import { ANY_KEY } from '../../http/access-rule.ts';
import { ok } from '../../http/contract.ts';
import type { Operation } from '../../http/operation.ts';
import type { Catalog } from '../catalog.ts';
import { ModelParamsSchema } from '../schema.ts';
import { ImageEndpointsSchema, ImageModelListSchema } from './schema.ts';
import { imageEndpoints, viewImageEndpoints, viewImageModels } from './view.ts';

const PATH = '/api/v1/images/models';

/** @param catalog returns the current catalog, which a reload replaces */
export function imageOperations<C>(catalog: () => Catalog): Operation<C>[] {
  return [
    {
      id: 'listImageModels',
      method: 'GET',
      path: '/images/models',
      summary: 'List image models and their supported parameters',
      tag: 'Images',
      access: ANY_KEY,
      replies: ok('The models', ImageModelListSchema),
      handle: (exchange) => exchange.reply(200, viewImageModels(catalog().models, PATH)),
    },
    {
      id: 'listImageModelEndpoints',
      method: 'GET',
      path: '/images/models/{author}/{slug}/endpoints',
      summary: 'List the endpoints of one image model with their prices',
      tag: 'Images',
      access: ANY_KEY,
      params: ModelParamsSchema,
      replies: ok('The endpoints', ImageEndpointsSchema),
      handle(exchange) {
        const model = catalog().find(`${exchange.params['author']}/${exchange.params['slug']}`);
        if (!model || imageEndpoints(model).length === 0) {
          throw new GatewayError('not_found', 'there is no such image model');
        }
        exchange.reply(200, viewImageEndpoints(model));
      },
    },
  ];
}
