/**
 * JSON Schema as the Gemini form takes it (`parametersJsonSchema`, `responseJsonSchema`). The service reads most of the
 * language, with references and unions, but refuses a few keywords outright; what can be said otherwise is, the rest is
 * left out and reported.
 */
import { type Fields, isFields } from '../conversation/fields.ts';
import type { Losses } from '../conversation/losses.ts';

/** Refused by the service, without effect on what is valid. */
const WORDLESS = new Set(['$schema', '$comment', 'examples', 'readOnly', 'writeOnly', 'deprecated', 'discriminator']);
/** Refused or not understood, and no other keyword says the same. */
const UNKNOWN = new Set([
  'not',
  'if',
  'then',
  'else',
  'patternProperties',
  'propertyNames',
  'unevaluatedProperties',
  'unevaluatedItems',
  'dependentRequired',
  'dependentSchemas',
  'contains',
  'minContains',
  'maxContains',
  'uniqueItems',
  'multipleOf',
  'contentEncoding',
  'contentMediaType',
]);
/** Members whose values are schemas by name. */
const MAPS = new Set(['properties', '$defs', 'definitions']);
/** Members whose values are a schema or a list of them. */
const NESTED = new Set(['items', 'prefixItems', 'anyOf', 'oneOf', 'allOf', 'additionalProperties']);

/** The schema in the words that the service takes; equal inputs give equal outputs. `where` names it in the report. */
export function geminiSchema(schema: unknown, where: string, losses: Losses): unknown {
  const dropped = new Set<string>();
  const converted = convert(schema, dropped);
  if (dropped.size > 0) losses.drop(where, `the provider does not take ${[...dropped].sort().join(', ')} in a schema`);
  return converted;
}

function convert(schema: unknown, dropped: Set<string>): unknown {
  if (Array.isArray(schema)) return schema.map((one) => convert(one, dropped));
  if (!isFields(schema)) return schema;
  const out: Fields = {};
  for (const [key, value] of Object.entries(schema)) {
    if (WORDLESS.has(key)) continue;
    if (UNKNOWN.has(key)) dropped.add(key);
    else if (MAPS.has(key) && isFields(value)) out[key] = mapped(value, dropped);
    else if (NESTED.has(key)) out[key] = convert(value, dropped);
    else if (key === 'const') out['enum'] ??= [value];
    else if (key === 'exclusiveMinimum' || key === 'exclusiveMaximum') bound(out, schema, key, dropped);
    else out[key] = value;
  }
  return merged(out, dropped);
}

function mapped(schemas: Fields, dropped: Set<string>): Fields {
  // Not assigned: a property may be called `__proto__`.
  return Object.fromEntries(Object.entries(schemas).map(([name, one]) => [name, convert(one, dropped)]));
}

/** Of whole numbers an open bound is a closed one beside it. */
function bound(out: Fields, schema: Fields, key: 'exclusiveMinimum' | 'exclusiveMaximum', dropped: Set<string>): void {
  const [name, step] = key === 'exclusiveMinimum' ? ['minimum', 1] : ['maximum', -1];
  const value = schema[key];
  if (schema['type'] === 'integer' && typeof value === 'number' && schema[name] === undefined) out[name] = value + step;
  else dropped.add(key);
}

/** `allOf` is not understood: of one schema it is that schema, of several plain objects their sum. */
function merged(schema: Fields, dropped: Set<string>): Fields {
  const all = schema['allOf'];
  if (!Array.isArray(all)) return schema;
  const { allOf: _, ...rest } = schema;
  let sum: Fields = rest;
  for (const one of all) {
    if (!isFields(one)) continue;
    for (const key of Object.keys(one)) {
      if (key === 'properties' && isFields(sum[key]))
        sum = { ...sum, properties: { ...sum[key], ...(one[key] as Fields) } };
      else if (key === 'required' && Array.isArray(sum[key])) {
        sum = { ...sum, required: [...new Set([...(sum[key] as unknown[]), ...((one[key] as unknown[]) ?? [])])] };
      } else if (sum[key] === undefined) sum = { ...sum, [key]: one[key] };
      else if (JSON.stringify(sum[key]) !== JSON.stringify(one[key])) dropped.add('allOf');
    }
  }
  return sum;
}
