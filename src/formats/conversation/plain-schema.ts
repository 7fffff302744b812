/**
 * Removes JSON Schema keywords that are null. Serializers write them for empty lists and maps (Go: `"required": null`),
 * and most services reject the whole request because of one. A null keyword means the same as an absent one.
 */
import { type JsonDocument, stringifyJson } from '../../base/json.ts';
import { type Fields, fieldsOf, isFields, listOf } from './fields.ts';

/** Keywords whose value is a schema or a list of schemas. */
const NESTED: ReadonlySet<string> = new Set([
  'items',
  'prefixItems',
  'additionalItems',
  'additionalProperties',
  'unevaluatedItems',
  'unevaluatedProperties',
  'propertyNames',
  'contains',
  'not',
  'if',
  'then',
  'else',
  'anyOf',
  'oneOf',
  'allOf',
]);
/** Keywords whose value maps names to schemas. */
const MAPS: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  'dependentSchemas',
  '$defs',
  'definitions',
]);
/** Keywords for which null is a valid value. */
const DATA: ReadonlySet<string> = new Set(['default', 'const', 'example']);

/** The schema without null keywords; the same object when it has none. */
export function withoutNullKeywords(schema: unknown): unknown {
  if (!isFields(schema)) return schema;
  let cleaned: Fields | undefined;
  for (const key of Object.keys(schema)) {
    const value = schema[key];
    const fitting = fittingValue(key, value);
    if (fitting === value) continue;
    cleaned ??= { ...schema };
    if (fitting === undefined) delete cleaned[key];
    else cleaned[key] = fitting;
  }
  return cleaned ?? schema;
}

/** The replacement for a keyword's value; undefined removes the keyword. */
function fittingValue(key: string, value: unknown): unknown {
  // OpenAI requires `properties` on an object, even empty ("object schema missing properties").
  if (value === null) return key === 'properties' ? {} : DATA.has(key) ? null : undefined;
  if (MAPS.has(key)) return isFields(value) ? withoutNullSchemas(value) : value;
  if (!NESTED.has(key)) return value;
  if (!Array.isArray(value)) return withoutNullKeywords(value);
  const schemas = value.filter((one) => one !== null).map(withoutNullKeywords);
  return schemas.length === value.length && schemas.every((one, at) => one === value[at]) ? value : schemas;
}

function withoutNullSchemas(schemas: Fields): Fields {
  let changed = false;
  const cleaned = Object.entries(schemas).map(([name, schema]): [string, unknown] => {
    const fitting = schema === null ? {} : withoutNullKeywords(schema);
    changed ||= fitting !== schema;
    return [name, fitting];
  });
  // Not assigned by key: a property may be called `__proto__`.
  return changed ? Object.fromEntries(cleaned) : schemas;
}

/**
 * Function parameters as OpenAI requires them: the type `object`, with `properties`. Clients of other formats omit both
 * for functions without parameters.
 */
export function namedProperties(parameters: unknown): unknown {
  if (!isFields(parameters)) return parameters;
  const { type, properties } = parameters;
  const composed = ['$ref', 'anyOf', 'oneOf', 'allOf'].some((word) => parameters[word] !== undefined);
  if (composed || (type === 'object' && properties !== undefined)) return parameters;
  if (type !== undefined && type !== 'object') return parameters;
  return { type: 'object', properties: {}, ...parameters };
}

/**
 * The `tools` of a relayed request, with their schemas under `key`; undefined (the usual case) when nothing changes.
 */
export function relayedTools(document: JsonDocument, key: string): string | undefined {
  if (!memberHoldsNull(document, 'tools')) return undefined;
  const tools = listOf(document.exact['tools']);
  const cleaned = tools.map((tool) => {
    const schema = fieldsOf(tool)[key];
    const fitting = withoutNullKeywords(schema);
    return fitting === schema ? tool : { ...fieldsOf(tool), [key]: fitting };
  });
  return cleaned.some((tool, at) => tool !== tools[at]) ? stringifyJson(cleaned) : undefined;
}

/** Whether a top-level member has null at any depth. */
export function memberHoldsNull({ structure }: JsonDocument, key: string): boolean {
  return holdsNull(structure[key]);
}

function holdsNull(value: unknown): boolean {
  if (typeof value !== 'object') return false;
  if (value === null) return true;
  if (Array.isArray(value)) return value.some(holdsNull);
  for (const key in value) if (holdsNull((value as Fields)[key])) return true;
  return false;
}
