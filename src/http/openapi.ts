/** Operations as an OpenAPI 3.1 document. TypeBox schemas are JSON Schema and go in as they are. */
import type { TSchema } from 'typebox';
import type { SchemaNode } from './explain.ts';
import type { Access, Operation } from './operation.ts';
import { API_PREFIXES } from './router.ts';

export interface OpenApiInfo {
  title: string;
  version: string;
  description?: string;
}

const METHOD_ORDER = ['get', 'post', 'put', 'patch', 'delete'];

const ACCESS_NOTES: Record<Access, string> = {
  none: 'Needs no key.',
  any: 'Needs any valid key.',
  management: 'Needs a management key.',
  inference: 'Needs an inference key.',
  scim: 'Needs a SCIM token.',
};

/** The error envelope of wire/common.md; inference operations of other forms describe theirs in `replies`. */
const ERROR_SCHEMA = {
  type: 'object',
  required: ['error'],
  properties: {
    error: {
      type: 'object',
      required: ['code', 'message'],
      properties: {
        code: { type: 'integer', description: 'The HTTP status.' },
        message: { type: 'string' },
        metadata: { type: 'object', properties: { error_type: { type: 'string' } } },
        availability: { type: 'object' },
      },
    },
    user_id: { type: ['string', 'null'] },
  },
};

/** The same operations give the same document, to the byte, in whatever order they come. Throws when an id stands twice. */
export function describeOperations<C>(operations: readonly Operation<C>[], info: OpenApiInfo): Record<string, unknown> {
  const paths: Record<string, Record<string, unknown>> = {};
  const ids = new Set<string>();
  for (const operation of [...operations].sort(compareOperations)) {
    if (ids.has(operation.id)) throw new Error(`two operations are called ${operation.id}`);
    ids.add(operation.id);
    paths[operation.path] ??= operation.root ? { servers: [{ url: '/' }] } : {};
    paths[operation.path]![operation.method.toLowerCase()] = describeOperation(operation);
  }
  const tags = [...new Set(operations.map((operation) => operation.tag))].sort();
  return {
    openapi: '3.1.0',
    info,
    servers: [{ url: API_PREFIXES[0] }],
    tags: tags.map((name) => ({ name })),
    paths,
    components: {
      securitySchemes: { key: { type: 'http', scheme: 'bearer', description: 'An API key of this gateway.' } },
      schemas: { Error: ERROR_SCHEMA },
      responses: {
        Error: {
          description: 'The request was refused or failed.',
          content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
        },
      },
    },
  };
}

function describeOperation<C>(operation: Operation<C>): Record<string, unknown> {
  const { id, summary, tag, access, body, contentType = 'application/json' } = operation;
  const parameters = [...pathParameters(operation), ...queryParameters(operation)];
  return {
    operationId: id,
    summary,
    description: ACCESS_NOTES[access],
    tags: [tag],
    security: access === 'none' ? [] : [{ key: [] }],
    ...(parameters.length > 0 && { parameters }),
    ...(body && {
      requestBody: {
        required: !body.optional,
        content: { [body.form ? 'application/x-www-form-urlencoded' : contentType]: { schema: body.schema } },
      },
    }),
    responses: { ...describeReplies(operation), default: errorReply(contentType) },
  };
}

/** Operations with a type of their own have an envelope of their own. */
function errorReply(contentType: string): Record<string, unknown> {
  if (contentType === 'application/json') return { $ref: '#/components/responses/Error' };
  return { description: 'The request was refused or failed.', content: { [contentType]: {} } };
}

function describeReplies<C>({ replies, contentType: usual = 'application/json' }: Operation<C>) {
  const described: Record<string, unknown> = {};
  for (const [status, { description, schema, contentType }] of Object.entries(replies)) {
    const content = (schema || contentType) && { [contentType ?? usual]: schema ? { schema } : {} };
    described[status] = { description, ...(content && { content }) };
  }
  return described;
}

function pathParameters<C>({ path, params }: Operation<C>): unknown[] {
  const properties = (params as SchemaNode | undefined)?.properties ?? {};
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!);
  return names.map((name) => ({ name, in: 'path', required: true, schema: properties[name] ?? { type: 'string' } }));
}

function queryParameters<C>({ query }: Operation<C>): unknown[] {
  const { properties = {}, required = [] } = (query as (SchemaNode & TSchema) | undefined) ?? {};
  return Object.entries(properties).map(([name, schema]) => {
    const { description } = schema as { description?: string };
    return { name, in: 'query', required: required.includes(name), ...(description && { description }), schema };
  });
}

function compareOperations<C>(a: Operation<C>, b: Operation<C>): number {
  if (a.path !== b.path) return a.path < b.path ? -1 : 1;
  return METHOD_ORDER.indexOf(a.method.toLowerCase()) - METHOD_ORDER.indexOf(b.method.toLowerCase());
}
