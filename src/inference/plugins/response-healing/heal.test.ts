import assert from 'node:assert/strict';
import test from 'node:test';
import fc from 'fast-check';
import type { OutputFormat } from '../../../formats/conversation/conversation.ts';
import { samples } from '../../../testing/laws/samples.ts';
import { heal, MAX_REPAIRED_LENGTH } from './heal.ts';
import { fitsSchema } from './schema-fit.ts';

const JSON_OBJECT: OutputFormat = { type: 'json' };
const schemaOf = (schema: unknown): OutputFormat => ({ type: 'schema', schema });

const objects = fc.dictionary(
  fc.string({ maxLength: 8 }).filter((key) => key !== '__proto__'),
  fc.jsonValue({ maxDepth: 3 }),
);

test('an object is found in fences, prose, thinking and all of them together, digit for digit', () => {
  const around: ((json: string) => string)[] = [
    (json) => `\`\`\`json\n${json}\n\`\`\``,
    (json) => `Sure! Here it is:\n\n\`\`\`\n${json}`,
    (json) => `Here it is: ${json} Anything else?`,
    (json) => `<think>Maybe {"no": 1}?</think>\n${json}`,
    (json) => `<think>x</think>As [asked]:\n\`\`\`JSON\n${json}\n\`\`\`\nDone.`,
  ];
  fc.assert(
    fc.property(objects, fc.constantFrom(...around), (value, wrap) => {
      const json = JSON.stringify(value);
      fc.pre(!json.includes('```'));
      const healed = heal(wrap(json), JSON_OBJECT);
      assert.deepEqual(healed, { text: json, outcome: 'stripped' });
    }),
    { numRuns: samples(200) },
  );
  const big = '{"n": 9007199254740993, "price": 1.10}';
  assert.equal(heal(`It is ${big}.`, JSON_OBJECT).text, big);
});

test('valid JSON stays as it is, of whatever structure, and healing twice changes nothing', () => {
  fc.assert(
    fc.property(fc.string(), objects, (noise, value) => {
      const json = JSON.stringify(value);
      assert.deepEqual(heal(json, schemaOf({ type: 'array' })), { text: json, outcome: 'valid' });
      const once = heal(`${noise}${json}${noise}`, JSON_OBJECT).text;
      assert.equal(heal(once, JSON_OBJECT).text, once);
    }),
    { numRuns: samples(200) },
  );
});

test('common faults are repaired', () => {
  const cases: [string, unknown][] = [
    ['{"a": 1, "b": [1, 2,],}', { a: 1, b: [1, 2] }],
    ["{'a': True, 'b': None}", { a: true, b: null }],
    ['{a: "x", // note\n "b": 2}', { a: 'x', b: 2 }],
    ['{"a": "line\nbreak"}', { a: 'line\nbreak' }],
    ['{"a": [1, {"b": "cut', { a: [1, { b: 'cut' }] }],
    ['```json\n{"a": 1,\n```', { a: 1 }],
    ['Result: {"a": 1 "b": 2}', { a: 1, b: 2 }],
    ['"{\\"a\\": 1}"', { a: 1 }],
  ];
  for (const [text, value] of cases) {
    const { text: healed, outcome } = heal(text, JSON_OBJECT);
    assert.deepEqual([JSON.parse(healed), outcome !== 'valid'], [value, true], text);
  }
});

test('the schema decides: what does not fit it, and what is no object where one is wanted, stays as written', () => {
  const city = schemaOf({ type: 'object', properties: { city: { type: 'string' } }, required: ['city'] });
  for (const [text, output] of [
    ['Here: {"town": "x"}', city],
    ['{"city": 5,}', city],
    ['{"a": 1}\n{"a": 2}', schemaOf({ type: 'object', required: ['b'] })],
    ['I cannot do that.', JSON_OBJECT],
    ['<think>{"a": 1}', schemaOf({ type: 'array' })],
    ['', JSON_OBJECT],
  ] as const) {
    assert.deepEqual(heal(text, output), { text, outcome: 'unrepairable' }, text);
  }
  // Of several values the one that fits is taken.
  assert.equal(heal('In {"town": 1} or {"city": "Bern"}?', city).text, '{"city": "Bern"}');
  assert.equal(heal('In {"town": 1} or {"city": "Bern",}?', city).outcome, 'repaired');
});

test('a text that is too long to be repaired in time stays as it is, and one that is only wrapped does not', () => {
  const faulty = `{"a": "${'x'.repeat(MAX_REPAIRED_LENGTH)}",}`;
  assert.deepEqual(heal(faulty, JSON_OBJECT), { text: faulty, outcome: 'unrepairable' });
  const long = JSON.stringify({ a: 'x'.repeat(1_000_000) });
  assert.equal(heal(`\`\`\`json\n${long}\n\`\`\``, JSON_OBJECT).text, long);
});

test('deep nesting and recursive schemas end within their bounds', () => {
  assert.equal(heal('['.repeat(10_000), JSON_OBJECT).outcome, 'unrepairable');
  const branch = { properties: { a: { $ref: '#' } }, required: ['a'] };
  const schema = { anyOf: [{ ...branch, required: ['b'] }, { ...branch, required: ['c'] }, { type: 'null' }] };
  let value: unknown = {};
  for (let depth = 0; depth < 100; depth++) value = { a: value };
  assert.equal(fitsSchema(value, schema), false);
});

test('the structure is checked as the schema says', () => {
  const node = {
    type: 'object',
    properties: { next: { $ref: '#/$defs/node' }, n: { type: 'integer' } },
    additionalProperties: false,
  };
  const schema = {
    $ref: '#/$defs/node',
    $defs: {
      node: {
        ...node,
        properties: { ...node.properties, next: { anyOf: [{ $ref: '#/$defs/node' }, { type: 'null' }] } },
      },
    },
  };
  assert.equal(fitsSchema({ n: 1, next: { n: 2, next: null } }, schema), true);
  assert.equal(fitsSchema({ n: 1, next: { n: 2.5 } }, schema), false);
  assert.equal(fitsSchema({ n: 1, other: 1 }, schema), false);
  assert.equal(fitsSchema('b', { enum: ['a', 'b'] }), true);
  assert.equal(fitsSchema('c', { enum: ['a', 'b'] }), false);
  assert.equal(
    fitsSchema([1, 'x'], { type: 'array', prefixItems: [{ type: 'number' }], items: { type: 'string' } }),
    true,
  );
  assert.equal(fitsSchema(null, { type: ['string', 'null'] }), true);
});
