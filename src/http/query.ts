/** Parses a query string into the values that its schema describes. */
import type { TObject } from 'typebox';
import { Compile } from 'typebox/compile';
import { invalidField } from '../base/errors.ts';
import { storable } from '../base/storable.ts';
import { explainRefusal, type SchemaNode } from './explain.ts';

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d{1,3})?$/;
const MAX_PARAMETERS = 1_000;
/** SDKs of vendors add these to all of their URLs. */
const OF_EVERY_URL: ReadonlySet<string> = new Set(['alt', 'api-version', 'beta']);

/**
 * Creates a function from the text after the question mark to the converted and checked parameters. Throws GatewayError
 * 400 that names the parameter. A list may be given as `name` or `name[]`, once for each item.
 * @param anyOther ignores parameters that the schema does not name
 */
export function queryReader(schema: TObject, anyOther = false): (search: string) => Record<string, unknown> {
  const validator = Compile(schema);
  const node = schema as SchemaNode;
  const properties = node.properties ?? {};
  return (search) => {
    const query: Record<string, unknown> = {};
    let count = 0;
    for (const [given, text] of search === '' ? [] : new URLSearchParams(search)) {
      count += 1;
      if (count > MAX_PARAMETERS) throw invalidField('the query', `has more than ${MAX_PARAMETERS} parameters`);
      const name = given.endsWith('[]') && isList(properties[given.slice(0, -2)]) ? given.slice(0, -2) : given;
      if (!Object.hasOwn(properties, name)) {
        if (anyOther || OF_EVERY_URL.has(name)) continue;
        const accepted = Object.keys(properties).join(', ') || 'none';
        // With an empty path the message would name the body.
        throw invalidField(name.slice(0, 100) || '""', `is not a parameter; accepted: ${accepted}`);
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

function isList(schema: SchemaNode | undefined): boolean {
  return schema !== undefined && arrayItem(schema) !== undefined;
}

function arrayItem(schema: SchemaNode): SchemaNode | undefined {
  if (schema.type === 'array') return schema.items ?? {};
  return schema.anyOf?.map(arrayItem).find((item) => item !== undefined);
}
