/**
 * Tool argument schemas as the vendor accepts them: of the type `object`, without `anyOf`, `oneOf` or `allOf` at the
 * top level, which fail the whole request ("input_schema does not support oneOf, allOf, or anyOf at the top level").
 * Below the top level they are allowed.
 */
import { type Fields, fieldsOf, isFields, listOf, textOf } from '../conversation/fields.ts';
import type { Losses } from '../conversation/losses.ts';

const UNIONS = ['allOf', 'anyOf', 'oneOf'] as const;
/** Nesting limit for unions; a self-referencing schema would never end. */
const MOST_LEVELS = 8;

/** Merges all alternatives into one object schema; deterministic. */
export function objectSchema(parameters: unknown, where: string, losses: Losses): unknown {
  const schema = fieldsOf(parameters);
  const type = schema['type'];
  const isUnion = UNIONS.some((key) => Array.isArray(schema[key]));
  if (!isUnion && type !== undefined && !Array.isArray(type)) return parameters;
  if (!isUnion) return { ...withProperties(schema), type: 'object' };
  losses.drop(
    where,
    'the provider does not support alternatives at the top of a schema: they are merged into one object',
  );
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

/** An alternative with its reference resolved and its own alternatives merged. */
function resolved(variant: unknown, root: Fields, level: number): Fields {
  const schema = fieldsOf(variant);
  const [, group, name] = /^#\/(\$defs|definitions)\/(.+)$/.exec(textOf(schema['$ref'])) ?? [];
  const target = group === undefined ? schema : fieldsOf(root[group])[name!];
  return isFields(target) ? merged(target, root, level + 1) : {};
}

/** The schema of a member that two alternatives define: either definition is valid. */
function either(known: unknown, other: unknown): unknown {
  if (known === undefined || JSON.stringify(known) === JSON.stringify(other)) return other;
  const before = isFields(known) && Object.keys(known).length === 1 ? listOf(known['anyOf']) : [];
  const list = before.length > 0 ? before : [known];
  return list.some((one) => JSON.stringify(one) === JSON.stringify(other)) ? known : { anyOf: [...list, other] };
}
