/**
 * Checks input against TypeBox schemas, compiled once per operation and applied in place: nothing is copied, converted
 * or defaulted, except that query texts become numbers and booleans first.
 */
import { type TSchema, Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { GatewayError, invalidField } from '../base/errors.ts';
import type { JsonDocument } from '../base/json.ts';
import { storable } from '../base/storable.ts';
import { explainRefusal, type SchemaNode } from './explain.ts';
import type { Operation } from './operation.ts';
import { queryReader } from './query.ts';

/** The compiled checks of an operation; each throws GatewayError 400 with the path of the offending field. */
interface Checks {
  params?: (params: Record<string, string>) => void;
  /** Takes the text after the question mark. */
  query?: (search: string) => Record<string, unknown>;
  body?: (document: JsonDocument) => void;
}

/** U+0000 as JSON writes it; JSON does not allow the raw character. */
const ESCAPED_NUL = '\\u0000';

const NO_PARAMETERS = Type.Object({});

const compiled = new WeakMap<object, Checks>();

/** Compiled at an operation's first request, so that start-up does not pay for hundreds of schemas. */
export function checksOf<C>(operation: Operation<C>): Checks {
  let checks = compiled.get(operation);
  if (!checks) {
    checks = {};
    const { anyText = false } = operation;
    if (operation.params) {
      const check = valueCheck(operation.params);
      checks.params = existingCheck(check);
    }
    const { query = NO_PARAMETERS, anyQuery = operation.access.kinds === 'anyone' } = operation;
    if (query !== NO_PARAMETERS || !anyQuery) checks.query = queryReader(query, anyQuery);
    if (operation.body) {
      const check = documentCheck(operation.body.schema);
      checks.body = anyText ? check : storedCheck(check);
    }
    compiled.set(operation, checks);
  }
  return checks;
}

/** A check of a plain value. @param at path of the value within the body; default: it is the body */
export function valueCheck(schema: TSchema): (value: unknown, at?: string) => void {
  const validator = Compile(schema);
  return (value, at) => {
    if (!validator.Check(value)) throw refuse(schema, value, at);
  };
}

/**
 * A check of a document. The structural view is checked first, since it is available at no cost. If it fails, the exact
 * value decides, because texts may look longer in the view than they are. Schemas that a longer or different text could
 * satisfy although the exact one does not (minimum lengths, patterns, formats) are checked on the exact value at once.
 */
export function documentCheck(schema: TSchema): (document: JsonDocument) => void {
  const validator = Compile(schema);
  const needsTrueTexts = dependsOnTexts(schema as SchemaNode);
  return (document) => {
    if (!needsTrueTexts && validator.Check(document.structure)) return;
    const { value } = document;
    if (!validator.Check(value)) throw refuse(schema, value);
  };
}

/** For path parameters: no stored name contains U+0000, which the database cannot store, so the answer is 404. */
function existingCheck(check: (params: Record<string, string>) => void): (params: Record<string, string>) => void {
  return (params) => {
    for (const [name, value] of Object.entries(params)) {
      if (value.includes('\0')) throw new GatewayError('not_found', `there is no ${name} with the character U+0000`);
    }
    check(params);
  };
}

/** For a document that is stored or compared with stored data: none of its texts may contain U+0000. */
function storedCheck(check: (document: JsonDocument) => void): (document: JsonDocument) => void {
  return (document) => {
    check(document);
    if (document.bytes.includes(ESCAPED_NUL)) checkStorable('', document.value);
  };
}

function checkStorable(path: string, value: unknown): void {
  if (typeof value === 'string') storable(path, value);
  if (typeof value !== 'object' || value === null) return;
  for (const [key, member] of Object.entries(value)) {
    storable(path === '' ? 'a key of the body' : `a key of ${path}`, key);
    checkStorable(Array.isArray(value) ? `${path}[${key}]` : path === '' ? key : `${path}.${key}`, member);
  }
}

function refuse(schema: TSchema, value: unknown, at = '') {
  const { path, problem } = explainRefusal(schema, value);
  const joint = at === '' || path === '' || path.startsWith('[') ? '' : '.';
  return invalidField(`${at}${joint}${path}`, problem);
}

function dependsOnTexts(node: unknown): boolean {
  if (typeof node !== 'object' || node === null) return false;
  if (Array.isArray(node)) return node.some(dependsOnTexts);
  const schema = node as SchemaNode;
  if ((schema.minLength ?? 0) > 1 || schema.pattern !== undefined || schema.format !== undefined || schema.not)
    return true;
  return Object.entries(schema).some(([key, part]) => {
    // Property names are not keywords, and records have a pattern for their keys that matches any text.
    if (key === 'properties' || key === 'patternProperties' || key === '$defs') {
      return Object.values(part as Record<string, unknown>).some(dependsOnTexts);
    }
    return key !== 'const' && key !== 'enum' && key !== 'default' && key !== 'examples' && dependsOnTexts(part);
  });
}
