/** Enforced schemas, tested against the vendor's documentation ("Structured outputs", "JSON Schema limitations"). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Losses } from '../conversation/losses.ts';
import { structuredSchema } from './structured-schema.ts';

function said(schema: unknown): { schema: unknown; reported: string } {
  const losses = new Losses();
  const converted = structuredSchema(schema, 'response_format', losses);
  return { schema: converted, reported: losses.dropped.map(({ what, why }) => `${what}: ${why}`).join('\n') };
}

test('every object is closed at any depth, and the rest of a plain schema is unchanged', () => {
  const point = { type: 'object', properties: { x: { type: 'number' }, y: { type: ['number', 'null'] } } };
  const { schema, reported } = said({
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    title: 'Route',
    properties: {
      kind: { type: 'string', enum: ['a', 'b'], description: 'which one', default: 'a' },
      from: { $ref: '#/$defs/point', description: 'a sibling of a reference' },
      via: { type: 'array', items: { anyOf: [point, { type: 'null' }] }, minItems: 1 },
      when: { type: 'string', format: 'date-time' },
      one: { const: 1 },
      alone: { allOf: [{ $ref: '#/$defs/point' }] },
      either: { oneOf: [{ $ref: '#/$defs/point' }, { type: 'null' }], discriminator: { propertyName: 'x' } },
    },
    required: ['kind'],
    additionalProperties: true,
    $defs: { point },
  });
  const closed = { ...point, additionalProperties: false };
  assert.deepEqual(schema, {
    type: 'object',
    title: 'Route',
    properties: {
      kind: { type: 'string', enum: ['a', 'b'], description: 'which one', default: 'a' },
      from: { $ref: '#/$defs/point' },
      via: { type: 'array', items: { anyOf: [closed, { type: 'null' }] }, minItems: 1 },
      when: { type: 'string', format: 'date-time' },
      one: { const: 1 },
      alone: { anyOf: [{ $ref: '#/$defs/point' }] },
      either: { anyOf: [{ $ref: '#/$defs/point' }, { type: 'null' }] },
    },
    required: ['kind'],
    additionalProperties: false,
    $defs: { point: closed },
  });
  assert.equal(reported, '');
});

test('unenforceable constraints are moved to the description and reported', () => {
  const { schema, reported } = said({
    type: 'object',
    properties: {
      age: { type: 'integer', minimum: 0, maximum: 150, description: 'in years' },
      name: { type: 'string', minLength: 1, pattern: '^[a-z]+$', format: 'idn-email' },
      tags: { type: 'array', items: { type: 'string' }, minItems: 2, uniqueItems: true },
    },
    additionalProperties: false,
  });
  assert.deepEqual(schema, {
    type: 'object',
    properties: {
      age: { type: 'integer', description: 'in years\n\n{minimum: 0, maximum: 150}' },
      name: { type: 'string', description: '{minLength: 1, pattern: "^[a-z]+$", format: "idn-email"}' },
      tags: { type: 'array', items: { type: 'string' }, description: '{minItems: 2, uniqueItems: true}' },
    },
    additionalProperties: false,
  });
  assert.match(reported, /^response_format: format, maximum, minItems, minLength, minimum, pattern, uniqueItems in a/);
});

test('a schema that the vendor cannot express is undefined', () => {
  const inside = (schema: unknown) => ({ type: 'object', properties: { a: schema }, additionalProperties: false });
  const node = { type: 'object', properties: { next: { $ref: '#/$defs/node' } } };
  for (const schema of [
    { type: 'object' },
    { type: 'object', properties: {} },
    inside({ type: 'object', additionalProperties: { type: 'string' } }),
    inside({ type: 'object', properties: { x: { type: 'string' } }, patternProperties: { '^y': {} } }),
    inside({}),
    inside(true),
    inside({ type: 'array' }),
    inside({ type: 'array', items: { type: 'string' }, prefixItems: [{ type: 'number' }] }),
    inside({ enum: [{ x: 1 }] }),
    inside({ anyOf: [] }),
    inside({ allOf: [inside({ type: 'string' }), inside({ type: 'number' })] }),
    inside({ type: 'object', properties: { x: { type: 'string' } }, anyOf: [{ required: ['x'] }] }),
    inside({ $ref: 'https://example.com/schema' }),
    { ...inside({ $ref: '#/$defs/node' }), $defs: { node } },
    inside({ $ref: '#' }),
    'object',
  ]) {
    assert.equal(said(schema).schema, undefined, JSON.stringify(schema));
  }
});

test('names and digits in a schema are unchanged', () => {
  const schema = JSON.parse(
    '{"type":"object","properties":{"__proto__":{"type":"string"},"$ref":{"type":"string"},"type":{"type":"integer"}},"additionalProperties":false}',
  );
  assert.equal(JSON.stringify(said(schema).schema), JSON.stringify(schema));
});
