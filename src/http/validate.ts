/**
 * Checks input against TypeBox schemas, compiled once per operation and applied in place: nothing is copied, converted
 * or filled in, except that texts of the query become numbers and booleans first.
 */
import type { TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { invalidField } from '../base/errors.ts';
import type { JsonDocument } from '../base/json.ts';
import { explainRefusal, type SchemaNode } from './explain.ts';
import type { Operation } from './operation.ts';
import { queryReader } from './query.ts';

/** The compiled checks of an operation; each throws GatewayError 400 with the path of the offending field. */
export interface Checks {
  params?: (params: Record<string, string>) => void;
  /** Takes the text behind the question mark. */
  query?: (search: string) => Record<string, unknown>;
  body?: (document: JsonDocument) => void;
}

const compiled = new WeakMap<object, Checks>();

/** Compiled at an operation's first request, so that a start does not pay for hundreds of them. */
export function checksOf<C>(operation: Operation<C>): Checks {
  let checks = compiled.get(operation);
  if (!checks) {
    checks = {};
    if (operation.params) checks.params = valueCheck(operation.params);
    if (operation.query) checks.query = queryReader(operation.query);
    if (operation.body) checks.body = documentCheck(operation.body.schema);
    compiled.set(operation, checks);
  }
  return checks;
}

/** A check of a plain value. */
export function valueCheck(schema: TSchema): (value: unknown) => void {
  const validator = Compile(schema);
  return (value) => {
    if (!validator.Check(value)) throw refuse(schema, value);
  };
}

/**
 * A check of a document. The structural view is asked first, since it costs nothing more; where it fails, the true value
 * decides, as texts may look longer there than they are. Schemas that a longer or other text could satisfy where the true
 * one does not (least lengths, patterns, formats) are asked of the true value at once.
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

function refuse(schema: TSchema, value: unknown) {
  const { path, problem } = explainRefusal(schema, value);
  return invalidField(path, problem);
}

function dependsOnTexts(node: unknown): boolean {
  if (typeof node !== 'object' || node === null) return false;
  if (Array.isArray(node)) return node.some(dependsOnTexts);
  const schema = node as SchemaNode;
  if ((schema.minLength ?? 0) > 1 || schema.pattern !== undefined || schema.format !== undefined || schema.not)
    return true;
  return Object.entries(schema).some(([key, part]) => {
    // The names of properties are no keywords, and records have the pattern of any text for their keys.
    if (key === 'properties' || key === 'patternProperties' || key === '$defs') {
      return Object.values(part as Record<string, unknown>).some(dependsOnTexts);
    }
    return key !== 'const' && key !== 'enum' && key !== 'default' && key !== 'examples' && dependsOnTexts(part);
  });
}
