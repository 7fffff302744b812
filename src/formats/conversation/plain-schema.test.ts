/** Tool schemas with null keywords, in every pair of formats. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { CLIENT_FORMATS, type ClientFormat } from '../../testing/clients/served-answer.ts';
import { playThrough } from '../../testing/laws/pipeline.ts';
import type { FormatId } from './conversation.ts';
import { namedProperties, withoutNullKeywords } from './plain-schema.ts';

// biome-ignore lint/suspicious/noExplicitAny: requests of every format are read freely
type Json = any;

const NULLS = {
  type: 'object',
  description: null,
  properties: {
    city: { type: 'string', enum: null, pattern: null, default: null },
    tags: { type: 'array', items: null },
    inner: { type: 'object', properties: null, required: null, additionalProperties: null },
    any: { anyOf: [{ type: 'string', title: null }, null, { default: null }] },
    free: null,
    // Properties may be named like keywords.
    required: { type: 'string' },
  },
  required: null,
  $defs: null,
};

const CLEAN = {
  type: 'object',
  properties: {
    city: { type: 'string', default: null },
    tags: { type: 'array' },
    inner: { type: 'object', properties: {} },
    any: { anyOf: [{ type: 'string' }, { default: null }] },
    free: {},
    required: { type: 'string' },
  },
};

test('null keywords are removed, null values stay', () => {
  assert.deepEqual(withoutNullKeywords(NULLS), CLEAN);
  assert.deepEqual(withoutNullKeywords({ const: null, enum: null }), { const: null });
  assert.deepEqual(withoutNullKeywords({ type: 'object', properties: null }), { type: 'object', properties: {} });
});

test('a schema without null is the same object', () => {
  fc.assert(
    fc.property(fc.object({ values: [fc.string(), fc.integer(), fc.boolean()] }), (schema) => {
      assert.equal(withoutNullKeywords(schema), schema);
    }),
  );
  assert.equal(withoutNullKeywords(CLEAN), CLEAN);
});

test('no schema has null keywords afterwards', () => {
  const depth = { maxDepth: 4, depthIdentifier: fc.createDepthIdentifier() };
  const schema = fc.letrec((tie) => ({
    node: fc.record(
      {
        type: fc.constantFrom('object', null),
        properties: fc.option(
          fc.dictionary(fc.constantFrom('a', 'items', '__proto__'), fc.option(tie('node'), depth), { maxKeys: 2 }),
          depth,
        ),
        required: fc.option(fc.array(fc.constantFrom('a', 'items'), { maxLength: 2 })),
        items: fc.option(tie('node'), depth),
        anyOf: fc.option(fc.array(fc.option(tie('node'), depth), { maxLength: 2 }), depth),
      },
      { requiredKeys: [] },
    ),
  })).node;
  fc.assert(
    fc.property(schema, (given) => {
      assert.doesNotMatch(JSON.stringify(withoutNullKeywords(given)), /null/);
    }),
  );
});

test('function parameters for OpenAI are an object with properties', () => {
  assert.deepEqual(namedProperties({}), { type: 'object', properties: {} });
  assert.deepEqual(namedProperties({ type: 'object' }), { type: 'object', properties: {} });
  assert.deepEqual(namedProperties({ properties: { a: {} } }), { type: 'object', properties: { a: {} } });
  for (const schema of [{ anyOf: [{}] }, { $ref: '#/$defs/a' }, { type: ['object', 'null'] }, CLEAN]) {
    assert.equal(namedProperties(schema), schema);
  }
});

const TOOLS: Record<ClientFormat, (schema: unknown) => Json> = {
  chat: (parameters) => ({ type: 'function', function: { name: 'get', parameters } }),
  messages: (input_schema) => ({ name: 'get', input_schema }),
  responses: (parameters) => ({ type: 'function', name: 'get', parameters }),
  gemini: (parametersJsonSchema) => ({ functionDeclarations: [{ name: 'get', parametersJsonSchema }] }),
};

const READ: Record<FormatId, (body: Json) => unknown> = {
  chat: ({ tools }) => tools[0].function.parameters,
  messages: ({ tools }) => tools[0].input_schema,
  responses: ({ tools }) => tools[0].parameters,
  gemini: ({ tools }) => tools[0].functionDeclarations[0].parametersJsonSchema,
  converse: ({ toolConfig }) => toolConfig.tools[0].toolSpec.inputSchema.json,
  cohere: ({ tools }) => tools[0].function.parameters,
};

for (const served of CLIENT_FORMATS) {
  for (const spoken of Object.keys(READ) as FormatId[]) {
    test(`${served} to ${spoken}: a tool schema reaches the service without null keywords`, async () => {
      const asked = { served, kind: spoken, spoken, stream: false };
      const sent = async (schema: unknown) => {
        const more = { tools: [TOOLS[served](schema)], metadata: { note: 'null' } };
        return READ[spoken](JSON.parse((await playThrough({ ...asked, more }, { pieces: [Buffer.from('{}')] })).sent));
      };
      assert.deepEqual(await sent(NULLS), CLEAN);
      const none = await sent({ type: 'object', properties: null, required: null });
      if (spoken !== 'gemini') assert.deepEqual(none, { type: 'object', properties: {} });
      // The word null in a text is not a keyword.
      const worded = { type: 'object', properties: { a: { type: 'string', description: 'or null' } } };
      assert.deepEqual(await sent(worded), worded);
    });
  }
}

test('null parameters are left out of a chat request', async () => {
  const asked = { served: 'chat', kind: 'chat', spoken: 'chat', stream: false } as const;
  const more = { tools: [TOOLS.chat(null)] };
  const { sent, status } = await playThrough({ ...asked, more }, { pieces: [Buffer.from('{}')] });
  assert.deepEqual(JSON.parse(sent).tools, [{ type: 'function', function: { name: 'get' } }], String(status));
});
