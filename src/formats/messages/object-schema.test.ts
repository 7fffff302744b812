/** Tool schemas whose top level is not a plain object, which the vendor rejects. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Losses } from '../conversation/losses.ts';
import { objectSchema } from './object-schema.ts';

function said(schema: unknown): { schema: unknown; reported: number } {
  const losses = new Losses();
  return { schema: objectSchema(schema, 'tools[f]', losses), reported: losses.dropped.length };
}

const STRING = { type: 'string' };
const NUMBER = { type: 'number' };

test('a plain object is unchanged, and a schema without a type becomes an object', () => {
  const plain = {
    type: 'object',
    properties: { a: { anyOf: [STRING, NUMBER] } },
    additionalProperties: { type: 'null' },
  };
  assert.equal(said(plain).schema, plain);
  assert.deepEqual(said(undefined), { schema: { type: 'object', properties: {} }, reported: 0 });
  assert.deepEqual(said({}), { schema: { type: 'object', properties: {} }, reported: 0 });
  assert.deepEqual(said({ properties: { a: STRING } }).schema, { type: 'object', properties: { a: STRING } });
  assert.deepEqual(said({ type: ['object', 'null'], properties: { a: STRING } }).schema, {
    type: 'object',
    properties: { a: STRING },
  });
});

test('top-level alternatives become one object with all members, and its description lists which belong together', () => {
  const { schema, reported } = said({
    type: 'object',
    description: 'A place.',
    properties: { zoom: NUMBER },
    required: ['zoom'],
    oneOf: [
      { properties: { name: STRING, at: STRING }, required: ['name', 'at'] },
      { properties: { lat: NUMBER, at: NUMBER }, required: ['lat', 'at'] },
    ],
  });
  assert.deepEqual(schema, {
    type: 'object',
    description: 'A place.\n\nMembers that are needed together: name, at; or lat, at.',
    properties: { zoom: NUMBER, name: STRING, at: { anyOf: [STRING, NUMBER] }, lat: NUMBER },
    required: ['zoom', 'at'],
  });
  assert.equal(reported, 1);
});

test('`allOf` is merged, including references and nested ones', () => {
  const { schema } = said({
    allOf: [
      { $ref: '#/$defs/base' },
      { anyOf: [{ properties: { b: STRING }, required: ['b'] }, { properties: { c: STRING } }] },
    ],
    $defs: { base: { type: 'object', properties: { a: STRING }, required: ['a'] } },
  });
  assert.deepEqual(schema, {
    type: 'object',
    properties: { a: STRING, b: STRING, c: STRING },
    required: ['a'],
    $defs: { base: { type: 'object', properties: { a: STRING }, required: ['a'] } },
  });
});

test('converting a schema that refers to itself terminates', () => {
  const { schema } = said({ anyOf: [{ $ref: '#/$defs/x' }], $defs: { x: { anyOf: [{ $ref: '#/$defs/x' }] } } });
  assert.deepEqual(schema, {
    type: 'object',
    properties: {},
    $defs: { x: { anyOf: [{ $ref: '#/$defs/x' }] } },
  });
});
