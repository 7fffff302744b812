/** Google's `Schema` (a subset of OpenAPI 3.0 with types in capitals) as JSON Schema. */
import { type Fields, isFields } from '../conversation/fields.ts';
import { camelCase } from './names.ts';

const NESTED = new Set(['items', 'additionalProperties']);
const LISTS = new Set(['anyOf', 'oneOf', 'allOf', 'prefixItems']);
const MAPS = new Set(['properties', 'defs', '$defs']);
/** 64-bit integers, which Google writes as text. */
const COUNTS = new Set(['minItems', 'maxItems', 'minLength', 'maxLength', 'minProperties', 'maxProperties']);
/** Of Google alone, without effect on validity. */
const LEFT_OUT = new Set(['propertyOrdering', 'nullable', 'example']);

export function jsonSchemaOf(schema: unknown): unknown {
  if (!isFields(schema)) return schema;
  const converted: Fields = {};
  for (const [given, value] of Object.entries(schema)) {
    const name = camelCase(given);
    if (name === 'type' && typeof value === 'string') converted['type'] = value.toLowerCase();
    else if (NESTED.has(name)) converted[name] = jsonSchemaOf(value);
    else if (LISTS.has(name) && Array.isArray(value)) converted[name] = value.map(jsonSchemaOf);
    else if (MAPS.has(name) && isFields(value)) converted[name] = mapOf(value);
    else if (COUNTS.has(name)) converted[name] = Number(value);
    else if (!LEFT_OUT.has(name)) converted[name] = value;
  }
  return schema['nullable'] === true ? nullable(converted) : converted;
}

function mapOf(schemas: Fields): Fields {
  return Object.fromEntries(Object.entries(schemas).map(([name, value]) => [name, jsonSchemaOf(value)]));
}

function nullable(schema: Fields): Fields {
  const { type } = schema;
  if (typeof type !== 'string') return { anyOf: [schema, { type: 'null' }] };
  const values = Array.isArray(schema['enum']) ? { enum: [...schema['enum'], null] } : {};
  return { ...schema, type: [type, 'null'], ...values };
}
