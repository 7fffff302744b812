/** The common parts of the operations of `/scim/v2`: path, content type, errors, lists and versions. */
import { type Static, Type } from 'typebox';
import type { Caller } from '../../access/index.ts';
import { GatewayError } from '../../base/errors.ts';
import { SCIM } from '../../http/access-rule.ts';
import { nullable, ok } from '../../http/contract.ts';
import type { Exchange, Operation } from '../../http/operation.ts';
import { publicUrl } from '../../http/public-url.ts';
import { type AttributePath, attributePathOf, type ResourceType } from './attributes.ts';
import { type Condition, readFilter } from './condition.ts';
import { encodeFault, FaultSchema, refusal, SCIM_TYPE } from './fault.ts';
import { loadLibraries } from './libraries.ts';
import { type Projection, readProjection } from './projection.ts';
import type { Attributes } from './resource.ts';

const ROOT = '/scim/v2';
/** Maximum and default number of resources per page. */
export const MAX_PAGE = 1_000;
const USUAL_PAGE = 100;

type Own =
  | 'root'
  | 'passesOverEmptySegments'
  | 'tag'
  | 'access'
  | 'anyText'
  | 'anyQuery'
  | 'contentType'
  | 'encodeError'
  | 'errorSchema';

/** @param path below `/scim/v2` */
export function scimOperation(operation: Omit<Operation<Caller>, Own>): Operation<Caller> {
  return {
    ...operation,
    path: ROOT + operation.path,
    root: true,
    // Microsoft Entra and others append `/Users` to the configured URL, which may end in a slash.
    passesOverEmptySegments: true,
    tag: 'SCIM 2.0',
    access: SCIM,
    // Reported in the protocol's own errors.
    anyText: true,
    // RFC 7644 leaves unknown parameters to the server.
    anyQuery: true,
    contentType: SCIM_TYPE,
    encodeError: encodeFault,
    errorSchema: FaultSchema,
    async handle(exchange) {
      await loadLibraries();
      await operation.handle(exchange);
    },
  };
}

/** Conflict, precondition failed, and too many changes at a time. */
export const WRITE_ERRORS = [409, 412, 429];

/** `protocol/resource.ts` and `protocol/patch.ts` parse it, because names are case-insensitive. */
export const AnyObject = Type.Object({}, { additionalProperties: true, $id: 'ScimResource' });
export const IdParams = Type.Object({ id: Type.String({ minLength: 1, maxLength: 200 }) });

const listed = {
  attributes: Type.Optional(
    Type.String({ description: 'Names, separated by commas; only these attributes are returned' }),
  ),
  excludedAttributes: Type.Optional(
    Type.String({ description: 'Names, separated by commas; these attributes are not returned' }),
  ),
};
export const ShownQuery = Type.Object(listed);
const ListQuery = Type.Object({
  filter: Type.Optional(Type.String({ description: 'As in RFC 7644, section 3.4.2.2' })),
  sortBy: Type.Optional(Type.String()),
  sortOrder: Type.Optional(Type.String({ description: '`ascending` or `descending`' })),
  startIndex: Type.Optional(Type.Integer({ description: 'From 1' })),
  count: Type.Optional(Type.Integer({ description: `Default ${USUAL_PAGE}, at most ${MAX_PAGE}` })),
  ...listed,
});

const text = Type.Optional(nullable(Type.String()));
const integer = Type.Optional(nullable(Type.Integer()));
const names = Type.Optional(nullable(Type.Array(Type.String(), { maxItems: 200 })));
/** null means unassigned, as everywhere in SCIM. */
const SearchBody = Type.Object(
  {
    filter: text,
    sortBy: text,
    sortOrder: text,
    startIndex: integer,
    count: integer,
    attributes: names,
    excludedAttributes: names,
  },
  { additionalProperties: true, $id: 'ScimSearch' },
);

interface ListRequest {
  condition: Condition | undefined;
  order: { by: AttributePath; descending: boolean } | undefined;
  /** 1-based. */
  startIndex: number;
  count: number;
  projection: Projection;
}

/** Some clients send every parameter and leave unused ones empty; an empty filter is still an error. */
function readListQuery(type: ResourceType, query: unknown): ListRequest {
  const { filter, sortBy, sortOrder, startIndex = 1, count = USUAL_PAGE } = query as Static<typeof ListQuery>;
  return {
    condition: filter === undefined ? undefined : readFilter(type, filter),
    order: sortBy ? { by: orderPathOf(type, sortBy), descending: isDescending(sortOrder) } : undefined,
    startIndex: Math.min(Number.MAX_SAFE_INTEGER, Math.max(1, startIndex)),
    count: Math.min(MAX_PAGE, Math.max(0, count)),
    projection: projectionOf(type, query),
  };
}

/** `POST .search` (RFC 7644, section 3.4.3). */
function readSearch(type: ResourceType, body: unknown): ListRequest {
  const given = Object.entries(body as Static<typeof SearchBody>).filter(([, value]) => value !== null);
  const { attributes, excludedAttributes, ...query } = Object.fromEntries(given) as Static<typeof SearchBody>;
  return readListQuery(type, {
    ...query,
    ...(attributes && { attributes: attributes.join(',') }),
    ...(excludedAttributes && { excludedAttributes: excludedAttributes.join(',') }),
  });
}

function orderPathOf(type: ResourceType, name: string): AttributePath {
  const attributePath = attributePathOf(type, name);
  if (!attributePath || attributePath.attribute.returned === 'never') {
    throw refusal('invalidValue', `sortBy is not a known attribute: ${name.slice(0, 200)}`);
  }
  const { attribute, sub } = attributePath;
  if (sub || !attribute.subAttributes) return attributePath;
  // Complex attributes are sorted by their value.
  const value = attribute.subAttributes.find((each) => each.name === 'value');
  if (!value) throw refusal('invalidValue', `${name} is an object; name one of its attributes`);
  return { ...attributePath, sub: value };
}

function isDescending(order: string | undefined): boolean {
  const word = order?.toLowerCase() || 'ascending';
  if (word !== 'ascending' && word !== 'descending') {
    throw refusal('invalidValue', 'sortOrder must be ascending or descending');
  }
  return word === 'descending';
}

export function projectionOf(type: ResourceType, query: unknown): Projection {
  const { attributes, excludedAttributes } = query as Static<typeof ShownQuery>;
  return readProjection(type, attributes, excludedAttributes);
}

export interface Listing {
  type: ResourceType;
  plural: 'Users' | 'Groups';
  /** Operation ids of GET on the list and of POST to `.search`. */
  ids: { list: string; search: string };
  /** One page, and the total over all pages. */
  read(exchange: Exchange<Caller>, request: ListRequest): Promise<{ total: number; resources: readonly Attributes[] }>;
}

/** GET with a query, and POST to `.search`, for resources of one type. */
export function listOperations({ type, plural, ids, read }: Listing): Operation<Caller>[] {
  const replies = ok('One page', AnyObject);
  const answer = async (exchange: Exchange<Caller>, request: ListRequest) => {
    const { total, resources } = await read(exchange, request);
    replyList(exchange, request, total, resources);
  };
  return [
    scimOperation({
      id: ids.list,
      method: 'GET',
      path: type.endpoint,
      summary: `List ${plural}, optionally filtered`,
      query: ListQuery,
      replies,
      handle: (exchange) => answer(exchange, readListQuery(type, exchange.query)),
    }),
    scimOperation({
      id: ids.search,
      method: 'POST',
      path: `${type.endpoint}/.search`,
      summary: 'The same, with the query in the body',
      body: { schema: SearchBody },
      replies,
      handle: (exchange) => answer(exchange, readSearch(type, exchange.body)),
    }),
  ];
}

export function replyList(
  exchange: Exchange<Caller>,
  { startIndex }: Pick<ListRequest, 'startIndex'>,
  totalResults: number,
  resources: readonly unknown[],
): void {
  exchange.reply(200, {
    schemas: ['urn:ietf:params:scim:api:messages:2.0:ListResponse'],
    totalResults,
    startIndex,
    itemsPerPage: resources.length,
    Resources: resources,
  });
}

/** The client's URL of `/scim/v2`. */
export function rootUrl(exchange: Parameters<typeof publicUrl>[0]): string {
  return publicUrl(exchange) + ROOT;
}

export interface Versioned {
  version: bigint;
  createdAt: Date;
  updatedAt: Date;
}

export function metaOf(type: ResourceType, id: string, { version, createdAt, updatedAt }: Versioned, root: string) {
  return {
    resourceType: type.name,
    created: createdAt.toISOString(),
    lastModified: updatedAt.toISOString(),
    location: `${root}${type.endpoint}/${encodeURIComponent(id)}`,
    version: etag(version),
  };
}

const etag = (version: bigint) => `W/"${version}"`;

/** Sends one resource, with the headers that repeat its `meta`. */
export function replyResource(
  exchange: Exchange<Caller>,
  status: 200 | 201,
  resource: Attributes,
  meta: ReturnType<typeof metaOf>,
): void {
  const location = {
    ETag: meta.version,
    ...(status === 201 ? { Location: meta.location } : { 'Content-Location': meta.location }),
  };
  exchange.reply(status, resource, location);
}

/** Throws 412 if `If-Match` names other versions only. */
export function checkVersion({ headers }: Pick<Exchange, 'headers'>, version: bigint): void {
  const wanted = headers['if-match'];
  if (wanted === undefined || wanted.trim() === '*') return;
  const digits = String(version);
  const named = wanted.split(',').map((each) => /^\s*(?:W\/)?"([^"]*)"\s*$/.exec(each)?.[1]);
  if (!named.includes(digits)) {
    throw new GatewayError('precondition_failed', `the current version is ${etag(version)}`, {
      headers: { ETag: etag(version) },
    });
  }
}
