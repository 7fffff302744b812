/**
 * The arguments of a tool as the vendor takes them: of the type `object`, and no `anyOf`, `oneOf` or `allOf` at the top of
 * the schema, because of which it refuses the whole request ("input_schema does not support oneOf, allOf, or anyOf at
 * the top level"). Below the top all of them stand.
 */
import { type Fields, fieldsOf, isFields, listOf, textOf } from '../conversation/fields.ts';
import type { Losses } from '../conversation/losses.ts';

const UNIONS = ['allOf', 'anyOf', 'oneOf'] as const;
/** Unions within unions; a schema that refers to itself has no end of them. */
const MOST_LEVELS = 8;

/** The schema as one object with the members of all alternatives; equal inputs give equal outputs. */
export function objectSchema(parameters: unknown, where: string, losses: Losses): unknown {
  const schema = fieldsOf(parameters);
  const type = schema['type'];
  const isUnion = UNIONS.some((key) => Array.isArray(schema[key]));
  if (!isUnion && type !== undefined && !Array.isArray(type)) return parameters;
  if (!isUnion) return { ...withProperties(schema), type: 'object' };
  losses.drop(where, 'the provider takes no alternatives at the top of a schema: their members are told as one object');
  return { ...merged(schema, schema, 0), type: 'object' };
}

function withProperties(schema: Fields): Fields {
  return Object.keys(schema).length === 0 ? { properties: {} } : schema;
}

function merged(schema: Fields, root: Fields, level: number): Fields {
  const { allOf, anyOf, oneOf, ...rest } = schema;
  const properties = new Map(Object.entries(fieldsOf(rest['properties'])));
  const required = new Set(listOf(rest['required']));
  const sets: string[] = [];
  for (const [key, union] of Object.entries({ allOf, anyOf, oneOf })) {
    const variants = level < MOST_LEVELS ? listOf(union).map((one) => resolved(one, root, level)) : [];
    for (const variant of variants) {
      for (const [name, one] of Object.entries(fieldsOf(variant['properties']))) {
        properties.set(name, either(properties.get(name), one));
      }
    }
    const needs = variants.map((variant) => new Set(listOf(variant['required'])));
    for (const name of needs.flatMap((names) => [...names])) {
      if (key === 'allOf' || needs.every((names) => names.has(name))) required.add(name);
    }
    if (key !== 'allOf' && needs.some(({ size }) => size > 0)) {
      sets.push(needs.map((names) => [...names].join(', ') || 'none').join('; or '));
    }
  }
  const told = sets.map((names) => `Members that are needed together: ${names}.`);
  const description = [textOf(rest['description']), ...told].filter((line) => line !== '').join('\n\n');
  return {
    ...rest,
    ...(description !== '' && { description }),
    properties: Object.fromEntries(properties),
    ...(required.size > 0 && { required: [...required] }),
  };
}

/** An alternative, read where it refers to, with its own alternatives merged. */
function resolved(variant: unknown, root: Fields, level: number): Fields {
  const schema = fieldsOf(variant);
  const [, group, name] = /^#\/(\$defs|definitions)\/(.+)$/.exec(textOf(schema['$ref'])) ?? [];
  const target = group === undefined ? schema : fieldsOf(root[group])[name!];
  return isFields(target) ? merged(target, root, level + 1) : {};
}

/** A member that two alternatives have is what either of them says. */
function either(known: unknown, other: unknown): unknown {
  if (known === undefined || JSON.stringify(known) === JSON.stringify(other)) return other;
  const before = isFields(known) && Object.keys(known).length === 1 ? listOf(known['anyOf']) : [];
  const list = before.length > 0 ? before : [known];
  return list.some((one) => JSON.stringify(one) === JSON.stringify(other)) ? known : { anyOf: [...list, other] };
}
