import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Type } from 'typebox';
import { describeOperations } from './openapi.ts';
import type { Operation } from './operation.ts';

const Thing = Type.Object({ name: Type.String() });

const operations: Operation[] = [
  {
    id: 'createThing',
    method: 'POST',
    path: '/things',
    summary: 'Makes a thing',
    tag: 'things',
    access: 'management',
    body: { schema: Thing },
    replies: { 201: { description: 'Made.', schema: Thing }, 204: { description: 'Nothing to make.' } },
    handle: () => {},
  },
  {
    id: 'getThing',
    method: 'GET',
    path: '/things/{id}',
    summary: 'Shows a thing',
    tag: 'things',
    access: 'any',
    query: Type.Object({ deep: Type.Optional(Type.Boolean({ description: 'With its parts.' })), view: Type.String() }),
    replies: { 200: { description: 'The thing.', contentType: 'text/plain' } },
    handle: () => {},
  },
  {
    id: 'health',
    method: 'GET',
    path: '/health',
    root: true,
    summary: 'Says that it lives',
    tag: 'service',
    access: 'none',
    replies: { 200: { description: 'It lives.' } },
    handle: () => {},
  },
];

const info = { title: 'Gatehouse', version: '1.2.3' };

// biome-ignore lint/suspicious/noExplicitAny: the document is read like a client reads it, without types.
const described = JSON.parse(JSON.stringify(describeOperations(operations, info))) as any;

test('names version, server, tags and the key', () => {
  assert.equal(described.openapi, '3.1.0');
  assert.deepEqual(described.info, info);
  assert.deepEqual(described.servers, [{ url: '/api/v1' }]);
  assert.deepEqual(described.tags, [{ name: 'service' }, { name: 'things' }]);
  assert.equal(described.components.securitySchemes.key.scheme, 'bearer');
});

test('describes body, replies, parameters and errors of an operation, schemas as they are', () => {
  const create = described.paths['/things'].post;
  assert.equal(create.operationId, 'createThing');
  assert.equal(create.requestBody.required, true);
  assert.deepEqual(create.requestBody.content['application/json'].schema, JSON.parse(JSON.stringify(Thing)));
  assert.deepEqual(create.responses['201'].content['application/json'].schema, JSON.parse(JSON.stringify(Thing)));
  assert.equal(create.responses['204'].content, undefined);
  assert.equal(create.responses.default.$ref, '#/components/responses/Error');
  assert.deepEqual(create.security, [{ key: [] }]);
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
  assert.deepEqual(Object.keys(get.responses['200'].content), ['text/plain']);
});

test('serves operations of the root at the root, without a key', () => {
  assert.deepEqual(described.paths['/health'].servers, [{ url: '/' }]);
  assert.deepEqual(described.paths['/health'].get.security, []);
});

test('every reference of the document leads somewhere', () => {
  for (const [, reference = ''] of JSON.stringify(described).matchAll(/"\$ref":"#\/([^"]+)"/g)) {
    let target = described;
    for (const step of reference.split('/')) target = target?.[step];
    assert.ok(target !== undefined, reference);
  }
});

test('is the same to the byte whatever the order of the operations', () => {
  const other = JSON.stringify(describeOperations([...operations].reverse(), info));
  assert.equal(other, JSON.stringify(describeOperations(operations, info)));
});

test('refuses two operations of one name', () => {
  assert.throws(
    () => describeOperations([operations[0]!, { ...operations[1]!, id: 'createThing' }], info),
    /createThing/,
  );
});
