/** openapi.json is valid, uses named components, and matches the operations. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { Validator } from '@seriousme/openapi-schema-validator';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { describeService } from '../../src/service-document.ts';

const written = describeService();
// biome-ignore lint/suspicious/noExplicitAny: the document is read like a client reads it, without types.
const document = JSON.parse(written) as any;
const { schemas } = document.components;

// biome-ignore lint/suspicious/noExplicitAny: as above.
type Described = any;

const described: [name: string, operation: Described][] = Object.entries<Described>(document.paths).flatMap(
  ([path, item]) =>
    Object.entries<Described>(item)
      .filter(([key]) => key !== 'servers')
      .map(([method, operation]): [string, Described] => [`${method.toUpperCase()} ${path}`, operation]),
);
const operationOf = (name: string): Described => described.find(([each]) => each === name)![1];

/** Every object in a value. */
function* objectsIn(value: unknown): Generator<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) return;
  if (!Array.isArray(value)) yield value as Record<string, unknown>;
  for (const member of Object.values(value)) yield* objectsIn(member);
}

function follow({ $ref: reference }: { $ref: string }): Described {
  let target = document;
  for (const step of reference.slice(2).split('/')) target = target?.[step];
  return target;
}

test('openapi.json is what the operations say (otherwise: npm run openapi)', () => {
  assert.equal(readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8'), written);
});

test('it is valid by the schema of OpenAPI 3.1', async () => {
  const { valid, errors } = await new Validator().validate(structuredClone(document));
  assert.ok(valid, JSON.stringify(errors, null, 2));
});

const ROOT = 'https://gatehouse.test/schemas';

test('every schema compiles in the strict mode of ajv', () => {
  const ajv = new Ajv2020({ strict: true, strictRequired: false, allowUnionTypes: true });
  (addFormats as unknown as (ajv: Ajv2020) => void)(ajv);
  const moved = (value: unknown) =>
    JSON.parse(JSON.stringify(value).replaceAll('#/components/schemas/', `${ROOT}#/$defs/`));
  ajv.addSchema({ $id: ROOT, $defs: moved(schemas) });
  const inPlace = [...objectsIn(document.paths)].flatMap(({ schema }) => (schema === undefined ? [] : [schema]));
  const named = Object.keys(schemas).map((name) => ({ $ref: `#/components/schemas/${name}` }));
  for (const schema of [...named, ...inPlace]) {
    assert.doesNotThrow(() => ajv.compile(moved(schema)), JSON.stringify(schema));
  }
});

test('every reference leads somewhere, and no schema has an $id', () => {
  for (const object of objectsIn(document)) {
    assert.ok(!('$id' in object), JSON.stringify(object).slice(0, 200));
    if (typeof object['$ref'] === 'string') assert.ok(follow(object as { $ref: string }), String(object['$ref']));
  }
});

test('bodies and answers in JSON are named components, so that client generators give them types', () => {
  for (const [name, operation] of described) {
    const contents = [
      operation.requestBody?.content,
      ...Object.values<Described>(operation.responses).map((reply) => reply.content),
    ];
    for (const content of contents) {
      for (const [type, { schema }] of Object.entries<Described>(content ?? {})) {
        if (!type.endsWith('json')) continue;
        const unnamed = (schema.anyOf ?? [schema]).filter((branch: Described) => branch.$ref === undefined);
        assert.deepEqual(unnamed, [], `${name}: ${type}`);
      }
    }
  }
  for (const name of [
    'Guardrail',
    'Key',
    'Workspace',
    'WorkspaceBudget',
    'Model',
    'Endpoint',
    'ByokKey',
    'ChatCompletion',
    'Message',
    'Response',
    'ChatRequest',
    'Error',
  ]) {
    assert.equal(schemas[name]?.type, 'object', name);
  }
});

test('no component is written out a second time somewhere else', () => {
  const named = new Map(Object.entries(schemas).map(([name, schema]) => [JSON.stringify(schema), name]));
  const large = [...objectsIn(document)].filter(
    (object) => Object.keys((object['properties'] as object) ?? {}).length > 3,
  );
  for (const object of large) {
    const name = named.get(JSON.stringify(object));
    if (name !== undefined) assert.equal(schemas[name], object, name);
  }
});

/** They check keys that are not in a header. */
const SIGNING_IN = [
  'POST /auth',
  'POST /console/session',
  'PUT /console/session/inference-key',
  'POST /upload/v1beta/files/{upload}',
];

test('operations say with which errors they answer, each in its own format', () => {
  const statuses = (name: string) => Object.keys(operationOf(name).responses).map(Number);
  for (const [name, { responses, requestBody, security }] of described) {
    const all = Object.keys(responses);
    assert.ok(!all.includes('default'), name);
    for (const status of ['400', '500', '503']) assert.ok(all.includes(status), `${name} ${status}`);
    assert.equal(
      ['401', '403'].every((status) => all.includes(status)),
      security.length > 0 || SIGNING_IN.includes(name),
      name,
    );
    assert.equal(
      ['413', '415'].every((status) => all.includes(status)),
      requestBody !== undefined,
      name,
    );
    assert.ok(!name.includes('{') || all.includes('404'), name);
  }
  const inference = [200, 400, 401, 402, 403, 404, 408, 409, 413, 415, 422, 429, 500, 502, 503, 504, 529];
  assert.deepEqual(statuses('POST /chat/completions'), inference);
  assert.deepEqual(statuses('POST /messages'), inference);
  assert.ok(statuses('POST /rerank').includes(524));
  assert.ok(statuses('POST /images').includes(524));
  assert.ok(statuses('PATCH /guardrails/{id}').includes(409));
  const errorOf = (name: string, status: number) => follow(operationOf(name).responses[status]).content;
  assert.deepEqual(errorOf('POST /messages', 429)['application/json'].schema, {
    $ref: '#/components/schemas/MessagesError',
  });
  assert.deepEqual(errorOf('POST /oauth/token', 415)['application/json'].schema, {
    $ref: '#/components/schemas/OAuthError',
  });
  assert.deepEqual(errorOf('GET /scim/v2/Users/{id}', 404), {
    'application/scim+json': { schema: { $ref: '#/components/schemas/ScimError' } },
  });
  assert.deepEqual(Object.keys(errorOf('GET /auth', 400)), ['application/json', 'text/html']);
});

test('content types are those that are sent: event streams, pages, plain text', () => {
  const typesOf = (name: string) => Object.keys(operationOf(name).responses['200'].content);
  for (const name of [
    'POST /chat/completions',
    'POST /messages',
    'POST /responses',
    'POST /completions',
    'POST /images',
  ]) {
    assert.deepEqual(typesOf(name), ['application/json', 'text/event-stream'], name);
  }
  assert.deepEqual(typesOf('GET /auth'), ['text/html']);
  assert.deepEqual(typesOf('GET /metrics'), ['text/plain', 'application/openmetrics-text']);
  assert.deepEqual(typesOf('GET /scim/v2/Users'), ['application/scim+json']);
  for (const name of ['ChatCompletionChunk', 'MessageEvent', 'ResponseEvent', 'CompletionChunk', 'ImageEvent']) {
    assert.equal(schemas[name]?.type, 'object', name);
  }
});

test('deferred tools work in all three conversation formats', () => {
  for (const [name, tool] of [
    ['ChatRequest', 'ChatTool'],
    ['MessagesRequest', 'MessagesTool'],
    ['ResponsesRequest', 'ResponsesTool'],
  ] as const) {
    assert.ok(JSON.stringify(schemas[name].properties.deferred_tools).includes('DeferredTools'), name);
    assert.ok(schemas[tool].properties.defer_loading, tool);
  }
  assert.deepEqual(Object.keys(schemas.DeferredTools.properties), ['protocol', 'profile', 'validation', 'search']);
});
