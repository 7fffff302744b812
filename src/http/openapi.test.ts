import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Type } from 'typebox';
import { type AccessRule, ANY_KEY, ANYONE, INFERENCE, MANAGEMENT } from './access-rule.ts';
import { Components } from './components.ts';
import { describeOperations } from './openapi.ts';
import type { Operation } from './operation.ts';

const Thing = Type.Object({ name: Type.String() }, { $id: 'Thing' });
const Refusal = Type.Object({ no: Type.String() }, { $id: 'Refusal' });

const operations: Operation[] = [
  {
    id: 'createThing',
    method: 'POST',
    path: '/things',
    summary: 'Makes a thing',
    tag: 'things',
    access: MANAGEMENT,
    body: { schema: Thing },
    replies: { 201: { description: 'Made.', schema: Thing }, 204: { description: 'Nothing to make.' } },
    errors: [409],
    handle: () => {},
  },
  {
    id: 'getThing',
    method: 'GET',
    path: '/things/{id}',
    summary: 'Shows a thing',
    tag: 'things',
    access: ANY_KEY,
    query: Type.Object({ deep: Type.Optional(Type.Boolean({ description: 'With its parts.' })), view: Type.String() }),
    params: Type.Object({ id: Type.String() }),
    errorSchema: Refusal,
    replies: {
      200: { description: 'The thing.', contentType: 'text/plain', events: { schema: Thing, description: 'It ends.' } },
    },
    handle: () => {},
  },
  {
    id: 'health',
    method: 'GET',
    path: '/health',
    root: true,
    summary: 'Says that it lives',
    tag: 'service',
    access: ANYONE,
    replies: { 200: { description: 'It lives.' } },
    handle: () => {},
  },
];

const info = { title: 'Gatehouse', version: '1.2.3' };

// biome-ignore lint/suspicious/noExplicitAny: the document is read without types, as a client reads it.
const described = JSON.parse(JSON.stringify(describeOperations(operations, info))) as any;

test('names version, server, tags and the key', () => {
  assert.equal(described.openapi, '3.1.0');
  assert.deepEqual(described.info, info);
  assert.deepEqual(described.servers, [{ url: '/api/v1' }]);
  assert.deepEqual(described.tags, [{ name: 'service' }, { name: 'things' }]);
  assert.equal(described.components.securitySchemes.key.scheme, 'bearer');
});

test('describes body, replies and parameters of an operation, with schemas by name', () => {
  const create = described.paths['/things'].post;
  assert.equal(create.operationId, 'createThing');
  assert.equal(create.requestBody.required, true);
  const reference = { $ref: '#/components/schemas/Thing' };
  assert.deepEqual(create.requestBody.content['application/json'].schema, reference);
  assert.deepEqual(create.responses['201'].content['application/json'].schema, reference);
  assert.equal(create.responses['204'].content, undefined);
  assert.deepEqual(create.security, [{ key: [] }, { apiKeyHeader: [] }]);
  assert.match(create.description, /management key/);
  const get = described.paths['/things/{id}'].get;
  assert.deepEqual(
    get.parameters.map(({ name, in: place, required }: Record<string, unknown>) => ({ name, place, required })),
    [
      { name: 'id', place: 'path', required: true },
      { name: 'deep', place: 'query', required: false },
      { name: 'view', place: 'query', required: true },
    ],
  );
  assert.equal(get.parameters[1].description, 'With its parts.');
  assert.deepEqual(Object.keys(get.responses['200'].content), ['text/plain', 'text/event-stream']);
});

test('error statuses follow from access, parameters and body, plus those that an operation declares', () => {
  const errorsOf = ({ responses }: { responses: Record<string, { $ref?: string }> }) =>
    Object.entries(responses).flatMap(([status, { $ref }]) => ($ref ? [[status, $ref.split('/').at(-1)]] : []));
  const create = errorsOf(described.paths['/things'].post);
  assert.deepEqual(
    create.map(([status]) => Number(status)),
    [400, 401, 403, 408, 409, 413, 415, 500, 503],
  );
  assert.deepEqual(create[0], ['400', 'Error400']);
  const get = errorsOf(described.paths['/things/{id}'].get);
  assert.deepEqual(get.at(-1), ['503', 'Refusal503']);
  assert.deepEqual(
    errorsOf(described.paths['/health'].get).map(([status]) => status),
    ['400', '500', '503'],
  );
  const { Refusal404: missing, Error401: closed } = described.components.responses;
  assert.deepEqual(missing.content, { 'application/json': { schema: { $ref: '#/components/schemas/Refusal' } } });
  assert.ok(closed.headers['WWW-Authenticate']);
});

test('the access rule of an operation gives its description, security and error statuses', () => {
  const described = (access: AccessRule) => {
    const { paths } = describeOperations([{ ...operations[0]!, body: undefined, errors: [], access }], info);
    const { description, security, responses } = (paths as Record<string, Record<string, Record<string, object>>>)[
      '/things'
    ]!['post']!;
    const statuses = Object.keys(responses!).map(Number);
    return { description, security, refusals: statuses.filter((status) => status > 400 && status < 500) };
  };
  const key = [{ key: [] }, { apiKeyHeader: [] }];
  assert.deepEqual(described(ANYONE), { description: 'Requires no key.', security: [], refusals: [] });
  assert.deepEqual(described(ANY_KEY), { description: 'Requires any valid key.', security: key, refusals: [401, 403] });
  assert.deepEqual(described({ kinds: ['management', 'scim'] }), {
    description: 'Requires a management key or a SCIM token.',
    security: [...key, { scimToken: [] }],
    refusals: [401, 403],
  });
  assert.deepEqual(described({ ...INFERENCE, programme: 'trial', scope: 'ownThing', regions: ['global'] }), {
    description:
      'Requires an inference key. Exists only for members of the trial programme; others get 404. ' +
      'The API key of a resource reaches only that resource; others get 404. Served by the global host only.',
    security: key,
    refusals: [401, 403, 404],
  });
  assert.deepEqual(described({ ...ANYONE, regions: ['europe', 'us'] }), {
    description: 'Requires no key. Served by the europe and us hosts only.',
    security: [],
    refusals: [403],
  });
});

test('a named schema is written once, string unions become enums, and a nullable schema references its base', () => {
  const components = new Components();
  const Word = Type.Union([Type.Literal('a'), Type.Literal('b')], { $id: 'Word' });
  const Inner = Type.Object({ word: Word, more: Type.Record(Type.String(), Type.Number()) }, { $id: 'Inner' });
  const Loose = Type.Unsafe({ ...Inner, type: ['object', 'null'] });
  components.use(Type.Object({ one: Inner, other: Type.Optional(Loose) }, { $id: 'Outer' }));
  const plain = JSON.parse(JSON.stringify(components.schemas));
  assert.deepEqual(Object.keys(plain), ['Inner', 'Outer', 'Word']);
  assert.deepEqual(plain.Word, { type: 'string', enum: ['a', 'b'] });
  assert.deepEqual(plain.Inner.properties.more, { type: 'object', additionalProperties: { type: 'number' } });
  const inner = { $ref: '#/components/schemas/Inner' };
  assert.deepEqual(plain.Outer.properties, { one: inner, other: { anyOf: [inner, { type: 'null' }] } });
  const namesake = Type.Object({}, { $id: 'Inner' });
  assert.throws(() => components.use(namesake), /two schemas are called Inner/);
});

test('serves root operations at the root, without a key', () => {
  assert.deepEqual(described.paths['/health'].servers, [{ url: '/' }]);
  assert.deepEqual(described.paths['/health'].get.security, []);
});

test('every reference of the document resolves', () => {
  for (const [, reference = ''] of JSON.stringify(described).matchAll(/"\$ref":"#\/([^"]+)"/g)) {
    let target = described;
    for (const step of reference.split('/')) target = target?.[step];
    assert.ok(target !== undefined, reference);
  }
});

test('is the same, byte for byte, for any order of the operations', () => {
  const other = JSON.stringify(describeOperations([...operations].reverse(), info));
  assert.equal(other, JSON.stringify(describeOperations(operations, info)));
});

test('refuses two operations of the same name', () => {
  assert.throws(
    () => describeOperations([operations[0]!, { ...operations[1]!, id: 'createThing' }], info),
    /createThing/,
  );
});
