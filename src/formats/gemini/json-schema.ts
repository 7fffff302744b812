/**
 * Converts JSON Schema for Gemini (`parametersJsonSchema`, `responseJsonSchema`). The service reads most of the
 * language, including references and unions, but rejects some keywords. Those are rewritten where another keyword can
 * express them; the others are dropped and reported.
 */
import { type Fields, isFields } from '../conversation/fields.ts';
import type { Losses } from '../conversation/losses.ts';

/** Rejected by the service, but without effect on validity. */
const WORDLESS = new Set(['$schema', '$comment', 'examples', 'readOnly', 'writeOnly', 'deprecated', 'discriminator']);
/** Rejected or not understood, without an equivalent keyword. */
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
/** Keywords whose value maps names to schemas. */
const MAPS = new Set(['properties', '$defs', 'definitions']);
/** Keywords whose value is a schema or a list of schemas. */
const NESTED = new Set(['items', 'prefixItems', 'anyOf', 'oneOf', 'allOf', 'additionalProperties']);

/** Keywords allowed next to a `$ref`, according to the service's error message. */
const BESIDE_REF: ReadonlySet<string> = new Set(['$ref', 'description', 'default']);
/** Longest chain of references; a longer one is circular. */
const MOST_STEPS = 16;
/** Most references inlined per schema, because recursive schemas would expand forever. */
const MOST_TARGETS = 128;

interface Conversion {
  /** The whole schema, which its references point into. */
  root: Fields;
  /** Keywords that were dropped. */
  dropped: Set<string>;
  /** References that may still be inlined. */
  targetsLeft: number;
}

/** The schema as the service accepts it. Deterministic. `where` names the schema in the report. */
export function geminiSchema(schema: unknown, where: string, losses: Losses): unknown {
  if (!isFields(schema)) return schema;
  const dropped = new Set<string>();
  const converted = convert(withoutRootReference(schema), { root: schema, dropped, targetsLeft: MOST_TARGETS });
  if (dropped.size > 0)
    losses.drop(where, `the provider does not accept ${[...dropped].sort().join(', ')} in a schema`);
  return converted;
}

/** Inlines the target of a root reference, because a `$ref` cannot keep the definitions next to it. */
function withoutRootReference(root: Fields): Fields {
  const { $ref: reference, ...siblings } = root;
  if (typeof reference !== 'string') return root;
  const target = targetOf(root, reference);
  if (target === undefined) return root;
  // The gateway adds a type to an untyped root, so the target's own type wins.
  return { ...siblings, ...target, ...only(siblings, BESIDE_REF) };
}

/** The schema that a reference within `root` leads to; undefined if external, missing or circular. */
function targetOf(root: Fields, reference: string): Fields | undefined {
  let pointer: unknown = reference;
  for (let steps = 0; steps < MOST_STEPS; steps += 1) {
    if (typeof pointer !== 'string' || !pointer.startsWith('#/')) return undefined;
    let found: unknown = root;
    for (const step of pointer.slice(2).split('/')) {
      found = isFields(found) || Array.isArray(found) ? (found as Fields)[unescaped(step)] : undefined;
    }
    if (!isFields(found)) return undefined;
    if (found['$ref'] === undefined) return found;
    pointer = found['$ref'];
  }
  return undefined;
}

/** Decodes one step of a JSON pointer in a URI fragment. */
function unescaped(step: string): string {
  const plain = step.replaceAll('~1', '/').replaceAll('~0', '~');
  try {
    return decodeURIComponent(plain);
  } catch {
    return plain;
  }
}

function only(schema: Fields, keys: ReadonlySet<string>): Fields {
  return Object.fromEntries(Object.entries(schema).filter(([key]) => keys.has(key)));
}

function convert(schema: unknown, conversion: Conversion): unknown {
  if (Array.isArray(schema)) return schema.map((one) => convert(one, conversion));
  if (!isFields(schema)) return schema;
  const { dropped } = conversion;
  const out: Fields = {};
  for (const [key, value] of Object.entries(schema)) {
    if (WORDLESS.has(key)) continue;
    if (UNKNOWN.has(key)) dropped.add(key);
    else if (MAPS.has(key) && isFields(value)) out[key] = mapped(value, conversion);
    else if (NESTED.has(key)) out[key] = convert(value, conversion);
    else if (key === 'const') out['enum'] ??= [value];
    else if (key === 'exclusiveMinimum' || key === 'exclusiveMaximum') bound(out, schema, key, dropped);
    else out[key] = value;
  }
  return bareReference(merged(out, conversion), dropped);
}

/** Removes keywords that the service rejects next to a `$ref`. The referenced schema usually repeats them. */
function bareReference(schema: Fields, dropped: Set<string>): Fields {
  if (typeof schema['$ref'] !== 'string') return schema;
  const others = Object.keys(schema).filter((key) => !BESIDE_REF.has(key));
  if (others.length === 0) return schema;
  for (const key of others) if (key !== 'title') dropped.add(`${key} next to $ref`);
  return only(schema, BESIDE_REF);
}

function mapped(schemas: Fields, conversion: Conversion): Fields {
  // Uses fromEntries because a property may be named `__proto__`.
  return Object.fromEntries(Object.entries(schemas).map(([name, one]) => [name, convert(one, conversion)]));
}

/** For integers, an exclusive bound becomes an inclusive one shifted by one. */
function bound(out: Fields, schema: Fields, key: 'exclusiveMinimum' | 'exclusiveMaximum', dropped: Set<string>): void {
  const [name, step] = key === 'exclusiveMinimum' ? ['minimum', 1] : ['maximum', -1];
  const value = schema[key];
  if (schema['type'] === 'integer' && typeof value === 'number' && schema[name] === undefined) out[name] = value + step;
  else dropped.add(key);
}

/**
 * Replaces `allOf`, which the service does not support: a single schema is inlined, several plain objects are merged.
 */
function merged(schema: Fields, conversion: Conversion): Fields {
  const { root, dropped } = conversion;
  const all = schema['allOf'];
  if (!Array.isArray(all)) return schema;
  const { allOf: _, ...rest } = schema;
  const alone = all.length === 1 && Object.keys(rest).every((key) => BESIDE_REF.has(key) || key === 'title');
  let sum: Fields = rest;
  for (const one of all) {
    if (!isFields(one)) continue;
    // A bare reference has no members to merge, so its target is merged instead.
    const reference = alone ? undefined : one['$ref'];
    const target = typeof reference === 'string' ? targetOf(root, reference) : undefined;
    const replaced = target !== undefined && conversion.targetsLeft-- > 0;
    sum = sumOf(sum, replaced ? (convert(target, conversion) as Fields) : one, dropped);
  }
  return sum;
}

function sumOf(schema: Fields, added: Fields, dropped: Set<string>): Fields {
  let sum = schema;
  for (const key of Object.keys(added)) {
    if (key === 'properties' && isFields(sum[key]))
      sum = { ...sum, properties: { ...sum[key], ...(added[key] as Fields) } };
    else if (key === 'required' && Array.isArray(sum[key])) {
      sum = { ...sum, required: [...new Set([...(sum[key] as unknown[]), ...((added[key] as unknown[]) ?? [])])] };
    } else if (sum[key] === undefined) sum = { ...sum, [key]: added[key] };
    else if (JSON.stringify(sum[key]) !== JSON.stringify(added[key])) dropped.add('allOf');
  }
  return sum;
}
