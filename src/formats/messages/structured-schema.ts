/**
 * Converts JSON Schema to the subset that the vendor enforces for answers and strict tool arguments
 * (platform.claude.com, "Structured outputs", "JSON Schema limitations"). Objects are closed and declare properties. A
 * constraint that the grammar cannot enforce fails the whole request, so it is moved to the description, as the
 * vendor's SDKs do.
 */
import { stringifyJson } from '../../base/json.ts';
import { type Fields, fieldsOf, isFields, listOf, textOf } from '../conversation/fields.ts';
import type { Losses } from '../conversation/losses.ts';

/** Keywords without effect on validation. */
const WORDLESS = new Set(
  ['$schema', '$id', '$comment', 'examples', 'deprecated', 'readOnly', 'writeOnly', 'discriminator'], //
);
const KEPT = ['title', 'description', 'default'];
const FORMATS = new Set(
  ['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'uri', 'ipv4', 'ipv6', 'uuid'], //
);
const DEFINITIONS = ['$defs', 'definitions'];

/** Thrown for what the subset cannot express: objects with arbitrary members, arbitrary values, recursion. */
class Unsayable extends Error {}

/**
 * The schema in that subset; deterministic. Constraints that are only described to the model are reported under
 * `where`. Undefined if the subset cannot express the schema.
 */
export function structuredSchema(schema: unknown, where: string, losses: Losses): Fields | undefined {
  const told = new Set<string>();
  try {
    if (!isFields(schema)) throw new Unsayable();
    const definitions = definitionsOf(schema);
    refuseRecursion(definitions);
    const converted = { ...convert(schema, definitions, told) };
    for (const key of DEFINITIONS) if (isFields(schema[key])) converted[key] = mapped(schema[key], definitions, told);
    if (told.size > 0) {
      losses.drop(where, `${[...told].sort().join(', ')} in a schema: the provider accepts them as a description only`);
    }
    return converted;
  } catch (error) {
    if (error instanceof Unsayable) return undefined;
    throw error;
  }
}

/** The schemas that a `$ref` can name, by reference. */
type Definitions = ReadonlyMap<string, unknown>;

function definitionsOf(schema: Fields): Definitions {
  const found = new Map<string, unknown>();
  for (const key of DEFINITIONS) {
    const named = schema[key];
    if (isFields(named)) for (const name of Object.keys(named)) found.set(`#/${key}/${name}`, named[name]);
  }
  return found;
}

function refuseRecursion(definitions: Definitions): void {
  const sound = new Set<string>();
  const visit = (reference: string, above: readonly string[]): void => {
    if (above.includes(reference)) throw new Unsayable();
    if (sound.has(reference)) return;
    for (const next of referencesIn(definitions.get(reference))) visit(next, [...above, reference]);
    sound.add(reference);
  };
  for (const reference of definitions.keys()) visit(reference, []);
}

function referencesIn(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(referencesIn);
  if (!isFields(value)) return [];
  return Object.entries(value).flatMap(([key, one]) =>
    key === '$ref' && typeof one === 'string' ? [one] : referencesIn(one),
  );
}

function convert(schema: unknown, definitions: Definitions, told: Set<string>): Fields {
  if (!isFields(schema)) throw new Unsayable();
  if (schema['$ref'] !== undefined) {
    if (!definitions.has(textOf(schema['$ref']))) throw new Unsayable();
    return { $ref: schema['$ref'] };
  }
  const out: Fields = {};
  const left = { ...schema };
  for (const key of [...DEFINITIONS, ...WORDLESS]) delete left[key];
  const take = (key: string): unknown => {
    const value = left[key];
    delete left[key];
    return value;
  };
  const union = take('anyOf') ?? take('oneOf') ?? only(take('allOf'));
  if (union !== undefined) {
    // A union with members of its own would have to be expanded into every combination.
    if (!Array.isArray(union) || union.length === 0 || 'properties' in left || 'items' in left) throw new Unsayable();
    delete left['type'];
    out['anyOf'] = union.map((one) => convert(one, definitions, told));
  } else {
    Object.assign(out, plain(left, take, definitions, told));
  }
  for (const key of KEPT) if (left[key] !== undefined) out[key] = take(key);
  const limits = Object.keys(left);
  if (limits.length > 0) {
    for (const key of limits) told.add(key);
    const text = limits.map((key) => `${key}: ${stringifyJson(left[key])}`).join(', ');
    out['description'] = [textOf(out['description']), `{${text}}`].filter((line) => line !== '').join('\n\n');
  }
  return out;
}

/** `allOf` of one schema equals that schema; several closed objects have no common member. */
function only(all: unknown): unknown {
  if (all === undefined) return undefined;
  return listOf(all).length === 1 ? all : [];
}

/** A schema without a union: a type, or enumerated values. `take` removes handled keywords from `left`. */
function plain(left: Fields, take: (key: string) => unknown, definitions: Definitions, told: Set<string>): Fields {
  const out: Fields = {};
  const [type, values, value] = [take('type'), take('enum'), take('const')];
  if (type !== undefined) out['type'] = type;
  if (value !== undefined) out['const'] = primitive(value);
  if (values !== undefined) {
    if (listOf(values).length === 0) throw new Unsayable();
    out['enum'] = listOf(values).map(primitive);
  }
  const types = Array.isArray(type) ? type : [type];
  if (type === undefined && values === undefined && value === undefined) throw new Unsayable();
  if (types.includes('object')) Object.assign(out, closed(take, definitions, told));
  if (types.includes('array')) {
    out['items'] = convert(take('items'), definitions, told);
    if (left['prefixItems'] !== undefined) throw new Unsayable();
    if (left['minItems'] === 0 || left['minItems'] === 1) out['minItems'] = take('minItems');
  }
  if (types.includes('string') && FORMATS.has(textOf(left['format']))) out['format'] = take('format');
  return out;
}

/** An object closed to its declared members: such answers are also valid where the schema allows others. */
function closed(take: (key: string) => unknown, definitions: Definitions, told: Set<string>): Fields {
  const [properties, required, others] = [take('properties'), take('required'), take('additionalProperties')];
  const named = isFields(properties) ? properties : {};
  const open = Object.keys(fieldsOf(others)).length > 0 || take('patternProperties') !== undefined;
  if (open || (Object.keys(named).length === 0 && others !== false)) throw new Unsayable();
  return {
    properties: mapped(named, definitions, told),
    ...(required !== undefined && { required }),
    additionalProperties: false,
  };
}

function mapped(schemas: Fields, definitions: Definitions, told: Set<string>): Fields {
  // Not assigned by key: a property may be called `__proto__`.
  return Object.fromEntries(Object.entries(schemas).map(([name, one]) => [name, convert(one, definitions, told)]));
}

function primitive(value: unknown): unknown {
  if (isFields(value) || Array.isArray(value)) throw new Unsayable();
  return value;
}
