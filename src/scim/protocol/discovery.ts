/** Service discovery (RFC 7643, sections 5 to 7; RFC 7644, section 4), and the unsupported operations. */
import { Type } from 'typebox';
import type { Caller } from '../../access/index.ts';
import { GatewayError } from '../../base/errors.ts';
import { ok } from '../../http/contract.ts';
import type { Exchange, Operation } from '../../http/operation.ts';
import { type Attribute, GROUP, type ResourceType, SCHEMAS, type Schema, USER } from './attributes.ts';
import { notFound, refusal } from './fault.ts';
import { AnyObject, IdParams, MAX_PAGE, replyList, rootUrl, scimOperation } from './operation.ts';

const TYPES = [USER, GROUP];
/** Discovery does not support filters (section 4). Ignoring one would return resources that were not requested. */
const NoFilter = Type.Object({ filter: Type.Optional(Type.String()) });

export function discoveryOperations(): Operation<Caller>[] {
  const replies = ok('The requested descriptions', AnyObject);
  const described = (
    id: string,
    path: string,
    summary: string,
    describe: (root: string) => readonly { id: string }[],
  ) => [
    scimOperation({
      id: `list${id}s`,
      method: 'GET',
      path,
      summary: `List all ${summary}`,
      query: NoFilter,
      replies,
      handle(exchange) {
        if (exchange.query['filter'] !== undefined) {
          throw new GatewayError('permission_denied', `${path} does not support filters`);
        }
        const all = describe(rootUrl(exchange));
        replyList(exchange, { startIndex: 1 }, all.length, all);
      },
    }),
    scimOperation({
      id: `get${id}`,
      method: 'GET',
      path: `${path}/{id}`,
      summary: `Get one of the ${summary}`,
      params: IdParams,
      replies,
      handle(exchange) {
        const wanted = exchange.params['id']!;
        const found = describe(rootUrl(exchange)).find((each) => each.id.toLowerCase() === wanted.toLowerCase());
        if (!found) throw notFound('resource', wanted);
        exchange.reply(200, found);
      },
    }),
  ];
  return [
    scimOperation({
      id: 'getScimServiceProviderConfig',
      method: 'GET',
      path: '/ServiceProviderConfig',
      summary: 'Get the supported features of SCIM',
      replies,
      handle: (exchange) => exchange.reply(200, serviceProviderConfig(rootUrl(exchange))),
    }),
    ...described('ScimResourceType', '/ResourceTypes', 'resource types', (root) =>
      TYPES.map((type) => describeType(type, root)),
    ),
    ...described('ScimSchema', '/Schemas', 'schemas', (root) => SCHEMAS.map((schema) => describeSchema(schema, root))),
    ...refused(
      'Me',
      '/Me',
      'Not supported: the caller is an identity provider, not a user',
      ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'],
      () =>
        new GatewayError('server', '/Me is not supported: an identity provider token does not belong to a user', {
          status: 501,
        }),
    ),
    ...refused(
      'Bulk',
      '/Bulk',
      'Not supported: bulk operations',
      ['POST'],
      () => new GatewayError('server', 'bulk operations are not supported', { status: 501 }),
    ),
    ...refused('Search', '/.search', 'Not supported: search over users and groups', ['POST'], () =>
      refusal('invalidValue', 'search one resource type only: /Users/.search or /Groups/.search'),
    ),
  ];
}

function refused(
  name: string,
  path: string,
  summary: string,
  methods: readonly Operation['method'][],
  refuse: () => GatewayError,
): Operation<Caller>[] {
  return methods.map((method) =>
    scimOperation({
      id: `scim${name}${methods.length > 1 ? method.charAt(0) + method.slice(1).toLowerCase() : ''}`,
      method,
      path,
      summary,
      errors: [501],
      replies: {},
      handle(_exchange: Exchange<Caller>) {
        throw refuse();
      },
    }),
  );
}

function serviceProviderConfig(root: string) {
  return {
    schemas: ['urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig'],
    patch: { supported: true },
    bulk: { supported: false, maxOperations: 0, maxPayloadSize: 0 },
    filter: { supported: true, maxResults: MAX_PAGE },
    changePassword: { supported: false },
    sort: { supported: true },
    etag: { supported: true },
    authenticationSchemes: [
      {
        type: 'oauthbearertoken',
        name: 'Bearer token',
        description: 'A SCIM token of this gateway, in the Authorization header',
        specUri: 'https://www.rfc-editor.org/info/rfc6750',
        primary: true,
      },
    ],
    meta: { resourceType: 'ServiceProviderConfig', location: `${root}/ServiceProviderConfig` },
  };
}

function describeType(type: ResourceType, root: string) {
  return {
    schemas: ['urn:ietf:params:scim:schemas:core:2.0:ResourceType'],
    id: type.name,
    name: type.name,
    endpoint: type.endpoint,
    description: type.description,
    schema: type.schema.id,
    schemaExtensions: type.extensions.map(({ id }) => ({ schema: id, required: false })),
    meta: { resourceType: 'ResourceType', location: `${root}/ResourceTypes/${type.name}` },
  };
}

function describeSchema({ id, name, description, attributes }: Schema, root: string) {
  return {
    schemas: ['urn:ietf:params:scim:schemas:core:2.0:Schema'],
    id,
    name,
    description,
    attributes: attributes.map(describeAttribute),
    meta: { resourceType: 'Schema', location: `${root}/Schemas/${id}` },
  };
}

function describeAttribute({ subAttributes, ...attribute }: Attribute): Record<string, unknown> {
  return { ...attribute, ...(subAttributes && { subAttributes: subAttributes.map(describeAttribute) }) };
}
