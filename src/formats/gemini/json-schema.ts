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

/** Keywords that may stand next to a `$ref`, in the words of the service's refusal. */
const BESIDE_REF: ReadonlySet<string> = new Set(['$ref', 'description', 'default']);
/** References that lead to a reference; more of them are a circle. */
const MOST_STEPS = 16;
/** References of one schema whose targets take their place: schemas that refer to themselves have no end of them. */
const MOST_TARGETS = 128;

interface Conversion {
  /** The whole schema, to which its references point. */
  root: Fields;
  /** Keywords that were left out. */
  dropped: Set<string>;
  /** How many more references may be replaced by their targets. */
  targetsLeft: number;
}

/** The schema in the words that the service takes; equal inputs give equal outputs. `where` names it in the report. */
export function geminiSchema(schema: unknown, where: string, losses: Losses): unknown {
  if (!isFields(schema)) return schema;
  const dropped = new Set<string>();
  const converted = convert(withoutRootReference(schema), { root: schema, dropped, targetsLeft: MOST_TARGETS });
  if (dropped.size > 0) losses.drop(where, `the provider does not take ${[...dropped].sort().join(', ')} in a schema`);
  return converted;
}

/** A root that is a reference would have to lose the definitions next to it, so the target takes its place. */
function withoutRootReference(root: Fields): Fields {
  const { $ref: reference, ...siblings } = root;
  if (typeof reference !== 'string') return root;
  const target = targetOf(root, reference);
  if (target === undefined) return root;
  // The kind of the root is ours where the client names none; that of the target is the client's.
  return { ...siblings, ...target, ...only(siblings, BESIDE_REF) };
}

/** The schema that a reference within `root` leads to; undefined for one that leads elsewhere, nowhere or to itself. */
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

/** A step of a JSON pointer in the fragment of a URI. */
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

/** A reference without the keywords that the service refuses next to one; what it refers to says most of them again. */
function bareReference(schema: Fields, dropped: Set<string>): Fields {
  if (typeof schema['$ref'] !== 'string') return schema;
  const others = Object.keys(schema).filter((key) => !BESIDE_REF.has(key));
  if (others.length === 0) return schema;
  for (const key of others) if (key !== 'title') dropped.add(`${key} next to $ref`);
  return only(schema, BESIDE_REF);
}

function mapped(schemas: Fields, conversion: Conversion): Fields {
  // Not assigned: a property may be called `__proto__`.
  return Object.fromEntries(Object.entries(schemas).map(([name, one]) => [name, convert(one, conversion)]));
}

/** Of whole numbers an open bound is a closed one beside it. */
function bound(out: Fields, schema: Fields, key: 'exclusiveMinimum' | 'exclusiveMaximum', dropped: Set<string>): void {
  const [name, step] = key === 'exclusiveMinimum' ? ['minimum', 1] : ['maximum', -1];
  const value = schema[key];
  if (schema['type'] === 'integer' && typeof value === 'number' && schema[name] === undefined) out[name] = value + step;
  else dropped.add(key);
}

/** `allOf` is not understood: of one schema it is that schema, of several plain objects their sum. */
function merged(schema: Fields, conversion: Conversion): Fields {
  const { root, dropped } = conversion;
  const all = schema['allOf'];
  if (!Array.isArray(all)) return schema;
  const { allOf: _, ...rest } = schema;
  const alone = all.length === 1 && Object.keys(rest).every((key) => BESIDE_REF.has(key) || key === 'title');
  let sum: Fields = rest;
  for (const one of all) {
    if (!isFields(one)) continue;
    // A reference among others says nothing that could be added up; its target does.
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
