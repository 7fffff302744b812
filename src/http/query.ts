/** Parses a query string into the values that its schema describes. */
import type { TObject } from 'typebox';
import { Compile } from 'typebox/compile';
import { invalidField } from '../base/errors.ts';
import { storable } from '../base/storable.ts';
import { explainRefusal, type SchemaNode } from './explain.ts';

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d{1,3})?$/;
const MAX_PARAMETERS = 1_000;

/**
 * Creates a function from the text after the question mark to the converted and checked parameters. Throws GatewayError
 * 400 that names the parameter. Parameters that the schema does not name are ignored, unless it forbids them.
 */
export function queryReader(schema: TObject): (search: string) => Record<string, unknown> {
  const validator = Compile(schema);
  const node = schema as SchemaNode;
  const properties = node.properties ?? {};
  return (search) => {
    const query: Record<string, unknown> = {};
    let count = 0;
    for (const [name, text] of search === '' ? [] : new URLSearchParams(search)) {
      count += 1;
      if (count > MAX_PARAMETERS) throw invalidField('the query', `has more than ${MAX_PARAMETERS} parameters`);
      if (!Object.hasOwn(properties, name)) {
        if (node.additionalProperties !== false) continue;
        // With an empty path the message would name the body.
        throw invalidField(
          name.slice(0, 100) || '""',
          `is not a parameter; accepted: ${Object.keys(properties).join(', ')}`,
        );
      }
      // The database cannot store U+0000 and rejects it in queries.
      storable(name, text);
      const property = properties[name]!;
      const item = arrayItem(property);
      if (item) {
        query[name] ??= [];
        (query[name] as unknown[]).push(convert(text, item));
      } else {
        if (Object.hasOwn(query, name)) throw invalidField(name, 'is given more than once');
        query[name] = convert(text, property);
      }
    }
    if (!validator.Check(query)) {
      const { path, problem } = explainRefusal(schema, query);
      throw invalidField(path === '' ? 'the query' : path, problem);
    }
    return query;
  };
}

/**
 * Converts the text to the first kind of value that the schema allows and that fits; otherwise returns it unchanged.
 */
function convert(text: string, schema: SchemaNode): unknown {
  if (schema.anyOf) {
    for (const branch of schema.anyOf) {
      const value = convert(text, branch);
      if (typeof value !== 'string') return value;
    }
    return text;
  }
  if ((schema.type === 'number' || schema.type === 'integer') && NUMBER.test(text)) return Number(text);
  if (schema.type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true';
  return text;
}

function arrayItem(schema: SchemaNode): SchemaNode | undefined {
  if (schema.type === 'array') return schema.items ?? {};
  return schema.anyOf?.map(arrayItem).find((item) => item !== undefined);
}
