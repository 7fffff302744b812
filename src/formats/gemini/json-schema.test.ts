import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Losses } from '../conversation/losses.ts';
import { geminiSchema } from './json-schema.ts';

const NODE = { type: 'object', properties: { next: { $ref: '#/$defs/node' } }, required: ['next'] };

function converted(schema: unknown, losses = new Losses()): unknown {
  return geminiSchema(schema, 'schema', losses);
}

test('only description and default stay next to a reference', () => {
  const losses = new Losses();
  const schema = {
    type: 'object',
    properties: {
      a: { $ref: '#/$defs/node', description: 'the first', default: null, title: 'A', type: 'object', minItems: 1 },
      b: { title: 'B', description: 'old style', allOf: [{ $ref: '#/$defs/node' }], default: {} },
      c: { type: 'array', items: { $ref: '#/$defs/node', nullable: true } },
      // A property may have the name of a keyword.
      $ref: { type: 'string' },
    },
    $defs: { node: NODE },
  };
  assert.deepEqual(converted(schema, losses), {
    type: 'object',
    properties: {
      a: { $ref: '#/$defs/node', description: 'the first', default: null },
      b: { $ref: '#/$defs/node', description: 'old style', default: {} },
      c: { type: 'array', items: { $ref: '#/$defs/node' } },
      $ref: { type: 'string' },
    },
    $defs: { node: NODE },
  });
  assert.match(losses.dropped[0]!.why, /minItems next to \$ref, nullable next to \$ref, type next to \$ref/);
});

test('a root reference is replaced by its target and keeps the definitions', () => {
  const $defs = { node: NODE, alias: { $ref: '#/$defs/node' } };
  for (const $ref of ['#/$defs/node', '#/$defs/alias']) {
    const schema = { $ref, description: 'a tree', $defs };
    assert.deepEqual(converted(schema), { ...NODE, description: 'a tree', $defs });
  }
  const named = { 'a/b~c d': { type: 'object', properties: { x: { type: 'string' } } } };
  assert.deepEqual(converted({ $ref: '#/definitions/a~1b~0c%20d', definitions: named }), {
    type: 'object',
    properties: { x: { type: 'string' } },
    definitions: named,
  });
});

test('allOf with a reference merges the target', () => {
  const $defs = { base: { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] } };
  const allOf = [{ $ref: '#/$defs/base' }, { properties: { n: { type: 'integer' } }, required: ['n'] }];
  assert.deepEqual(converted({ type: 'object', properties: { x: { allOf } }, $defs }), {
    type: 'object',
    properties: {
      x: { type: 'object', properties: { id: { type: 'string' }, n: { type: 'integer' } }, required: ['id', 'n'] },
    },
    $defs,
  });
});

test('circular and dangling references terminate', () => {
  const circle = { allOf: [{ $ref: '#/$defs/a' }, { $ref: '#/$defs/a' }], type: 'object' };
  for (const schema of [
    { $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } } },
    { $ref: '#' },
    { $ref: '#/$defs/none', type: 'object' },
    { $ref: 'https://example.com/schema.json', type: 'object' },
    { ...circle, $defs: { a: circle } },
  ]) {
    const text = JSON.stringify(converted(schema));
    assert.ok(text.length < 10_000, text.slice(0, 200));
  }
  assert.deepEqual(converted({ $ref: '#/$defs/none', type: 'object' }), { $ref: '#/$defs/none' });
});
