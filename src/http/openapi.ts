/**
 * Describes operations as an OpenAPI 3.1 document. TypeBox schemas are JSON Schema; those with a name become
 * components.
 */
import { type TSchema, Type } from 'typebox';
import type { AccessRule, CallerKind } from './access-rule.ts';
import { Components } from './components.ts';
import type { SchemaNode } from './explain.ts';
import type { Operation, OperationReply } from './operation.ts';
import { API_PREFIXES } from './router.ts';
import { errorStatuses } from './statuses.ts';

interface OpenApiInfo {
  title: string;
  version: string;
  description?: string;
}

const METHOD_ORDER = ['get', 'post', 'put', 'patch', 'delete'];
const JSON_TYPE = 'application/json';
const FORM_TYPE = 'application/x-www-form-urlencoded';

const CREDENTIALS: Readonly<Record<CallerKind, string>> = {
  inference: 'an inference key',
  management: 'a management key',
  scim: 'a SCIM token',
};

const SECURITY_SCHEMES = {
  key: { type: 'http', scheme: 'bearer', description: 'An API key of this gateway.' },
  apiKeyHeader: { type: 'apiKey', in: 'header', name: 'x-api-key', description: 'The same key, as some SDKs send it.' },
  scimToken: { type: 'http', scheme: 'bearer', description: 'A SCIM token of this gateway.' },
};

/** Descriptions of errors, by status. */
const ERROR_NOTES: Readonly<Record<number, string>> = {
  400: 'The request is malformed or not possible.',
  401: 'The key is missing or invalid.',
  402: 'A budget or the balance is used up.',
  403: 'The key may not do this.',
  404: 'The resource does not exist.',
  408: 'The request took too long to arrive, or to answer.',
  409: 'The request conflicts with the current state.',
  412: 'The version of the resource does not match the precondition.',
  413: 'The body is too large.',
  415: 'The media type or encoding of the body is not supported.',
  416: 'The range is outside of the content.',
  422: 'The upstream cannot process the request.',
  429: 'A rate limit is reached.',
  500: 'The gateway failed.',
  501: 'The operation is not supported.',
  502: 'The upstream failed.',
  503: 'The gateway is busy, shutting down, or cannot reach a service that it needs.',
  504: 'The upstream did not answer in time.',
  524: 'The upstream did not answer in time.',
  529: 'The upstream is overloaded.',
};
/** Errors that may carry `Retry-After`. */
const RETRIABLE = new Set([429, 503, 529]);

/** The body of errors, unless an operation has its own. */
export const ErrorSchema = Type.Object(
  {
    error: Type.Object({
      code: Type.Integer({ description: 'The HTTP status' }),
      message: Type.String(),
      metadata: Type.Optional(
        Type.Object({ error_type: Type.Optional(Type.String()) }, { additionalProperties: true }),
      ),
      availability: Type.Optional(Type.Object({}, { additionalProperties: true })),
    }),
    user_id: Type.Optional(Type.Union([Type.String(), Type.Null()], { description: 'The id of the account' })),
  },
  { $id: 'Error', additionalProperties: true },
);

const HEADERS = {
  'X-Request-Id': {
    description: "The id of the request: the client's own `X-Request-Id`, or a new one.",
    required: true,
    schema: { type: 'string' },
  },
  'WWW-Authenticate': { description: 'Always `Bearer`.', required: true, schema: { type: 'string' } },
  'Retry-After': { description: 'Seconds.', schema: { type: 'integer' } },
};
const REQUEST_ID = { 'X-Request-Id': headerRef('X-Request-Id') };

/** The output is the same, byte for byte, for any order of the operations. Throws for a duplicate id. */
export function describeOperations<C>(operations: readonly Operation<C>[], info: OpenApiInfo): Record<string, unknown> {
  const document = new Document<C>();
  const ids = new Set<string>();
  for (const operation of [...operations].sort(compareOperations)) {
    if (ids.has(operation.id)) throw new Error(`two operations are called ${operation.id}`);
    ids.add(operation.id);
    document.add(operation);
  }
  const tags = [...new Set(operations.map((operation) => operation.tag))].sort();
  return {
    openapi: '3.1.0',
    info,
    servers: [{ url: API_PREFIXES[0] }],
    tags: tags.map((name) => ({ name })),
    paths: document.paths,
    components: {
      securitySchemes: SECURITY_SCHEMES,
      headers: HEADERS,
      schemas: document.components.schemas,
      responses: Object.fromEntries([...document.errors].sort(([a], [b]) => (a < b ? -1 : 1))),
    },
  };
}

class Document<C> {
  readonly paths: Record<string, Record<string, unknown>> = {};
  readonly components = new Components();
  /** Error responses by name. */
  readonly errors = new Map<string, unknown>();

  add(operation: Operation<C>): void {
    this.paths[operation.path] ??= operation.root ? { servers: [{ url: '/' }] } : {};
    this.paths[operation.path]![operation.method.toLowerCase()] = this.#describe(operation);
  }

  #describe(operation: Operation<C>): Record<string, unknown> {
    const { id, summary, tag, access, body, upload, contentType = JSON_TYPE } = operation;
    const parameters = [...this.#pathParameters(operation), ...this.#queryParameters(operation)];
    return {
      operationId: id,
      summary,
      description: accessNote(access),
      tags: [tag],
      security: securityOf(operation),
      ...(parameters.length > 0 && { parameters }),
      ...(body && {
        requestBody: {
          required: !body.optional,
          content: {
            [body.form ? FORM_TYPE : contentType]: { schema: this.components.use(body.described ?? body.schema) },
            ...(body.multipart && {
              'multipart/form-data': { schema: this.components.use(body.multipart.schema) },
            }),
          },
        },
      }),
      ...(upload && {
        requestBody: {
          required: !upload.optional,
          content: { [upload.contentType ?? '*/*']: { schema: this.components.use(upload.schema) } },
        },
      }),
      responses: { ...this.#replies(operation), ...this.#errors(operation) },
    };
  }

  #replies({ replies, contentType = JSON_TYPE }: Operation<C>): Record<string, unknown> {
    const described = Object.entries(replies).map(([status, reply]) => [status, this.#reply(reply, contentType)]);
    return Object.fromEntries(described);
  }

  #reply(
    { description, schema, contentType, events, texts = [], headers = {} }: OperationReply,
    defaultType: string,
  ): unknown {
    const content: Record<string, unknown> = {};
    if (schema || contentType)
      content[contentType ?? defaultType] = schema ? { schema: this.components.use(schema) } : TEXT;
    if (events) {
      const description = `The data of each event is a ${this.components.nameOf(events.schema)}. ${events.description}`;
      content['text/event-stream'] = { schema: { type: 'string', description: description } };
    }
    for (const type of texts) content[type] = TEXT;
    const own = Object.entries(headers).map(([name, text]) => [
      name,
      { description: text, schema: { type: 'string' } },
    ]);
    return {
      description,
      headers: { ...REQUEST_ID, ...Object.fromEntries(own) },
      ...(Object.keys(content).length > 0 && { content }),
    };
  }

  #errors(operation: Operation<C>): Record<string, unknown> {
    const { contentType = JSON_TYPE, errorSchema = ErrorSchema, errorPages = false } = operation;
    const schemaName = this.components.nameOf(errorSchema);
    const described = errorStatuses(operation).map((status) => {
      const name = `${schemaName}${errorPages ? 'Page' : ''}${status}`;
      if (!this.errors.has(name)) {
        this.errors.set(name, {
          description: ERROR_NOTES[status] ?? 'The request failed.',
          headers: {
            ...REQUEST_ID,
            ...(status === 401 && { 'WWW-Authenticate': headerRef('WWW-Authenticate') }),
            ...(RETRIABLE.has(status) && { 'Retry-After': headerRef('Retry-After') }),
          },
          content: {
            [contentType]: { schema: this.components.use(errorSchema) },
            ...(errorPages && { 'text/html': TEXT }),
          },
        });
      }
      return [status, { $ref: `#/components/responses/${name}` }];
    });
    return Object.fromEntries(described);
  }

  #pathParameters({ path, params }: Operation<C>): unknown[] {
    const properties = (params as SchemaNode | undefined)?.properties ?? {};
    const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!);
    return names.map((name) => this.#parameter(name, 'path', true, properties[name] ?? { type: 'string' }));
  }

  #queryParameters({ query }: Operation<C>): unknown[] {
    const { properties = {}, required = [] } = (query as (SchemaNode & TSchema) | undefined) ?? {};
    const entries = Object.entries(properties);
    return entries.map(([name, schema]) => this.#parameter(name, 'query', required.includes(name), schema));
  }

  #parameter(name: string, place: 'path' | 'query', required: boolean, schema: SchemaNode): unknown {
    const { description, ...rest } = schema as SchemaNode & { description?: string };
    const used = this.components.use(rest as TSchema);
    return { name, in: place, required, ...(description && { description }), schema: used };
  }
}

const TEXT = { schema: { type: 'string' } };

function headerRef(name: keyof typeof HEADERS): { $ref: string } {
  return { $ref: `#/components/headers/${name}` };
}

/** An operation that some requests may call without a key lists that as an alternative. */
function securityOf<C>({ access, opens }: Operation<C>): Record<string, never[]>[] {
  const { kinds } = access;
  if (kinds === 'anyone') return [];
  return [
    ...(kinds.some((kind) => kind !== 'scim') ? [{ key: [] }, { apiKeyHeader: [] }] : []),
    ...(kinds.includes('scim') ? [{ scimToken: [] }] : []),
    ...(opens ? [{}] : []),
  ];
}

function accessNote({ kinds, programme, scope, regions }: AccessRule): string {
  const notes = [`Requires ${kinds === 'anyone' ? 'no key' : credentialOf(kinds)}.`];
  if (programme !== undefined) notes.push(`Exists only for members of the ${programme} programme; others get 404.`);
  if (scope !== undefined) notes.push('The API key of a resource reaches only that resource; others get 404.');
  if (regions) notes.push(`Served by the ${regions.join(' and ')} ${regions.length === 1 ? 'host' : 'hosts'} only.`);
  return notes.join(' ');
}

function credentialOf(kinds: readonly CallerKind[]): string {
  if (kinds.includes('inference') && kinds.includes('management')) return 'any valid key';
  return kinds.map((kind) => CREDENTIALS[kind]).join(' or ');
}

function compareOperations<C>(a: Operation<C>, b: Operation<C>): number {
  if (a.path !== b.path) return a.path < b.path ? -1 : 1;
  return METHOD_ORDER.indexOf(a.method.toLowerCase()) - METHOD_ORDER.indexOf(b.method.toLowerCase());
}
