/**
 * Explains why a schema refuses a value: one path, one problem. In a union it follows the branch that the value's tag
 * (`type`, `role`) or kind selects. Runs only after a check has failed.
 */
import type { TSchema } from 'typebox';
import { Value } from 'typebox/value';
import { keyStep } from '../base/json-fault.ts';

interface Refusal {
  /** `messages[3].content`; '' for the value itself. */
  path: string;
  /** Continues a sentence that starts with the path: `must be a string`. */
  problem: string;
}

/** The JSON Schema keywords written by TypeBox that are used here. */
export interface SchemaNode {
  type?: string | string[];
  const?: unknown;
  enum?: unknown[];
  anyOf?: SchemaNode[];
  oneOf?: SchemaNode[];
  allOf?: SchemaNode[];
  not?: unknown;
  properties?: Record<string, SchemaNode>;
  patternProperties?: Record<string, SchemaNode>;
  additionalProperties?: boolean | SchemaNode;
  required?: string[];
  items?: SchemaNode;
  minItems?: number;
  maxItems?: number;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  exclusiveMaximum?: number;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  format?: string;
  $ref?: string;
  $defs?: Record<string, SchemaNode>;
}

interface Found extends Refusal {
  /** The number of steps in the path: the deeper of two refusals is the more specific. */
  depth: number;
  /** The value's kind or tag is wrong, so another branch of a union was meant. */
  wrongBranch: boolean;
}

const MAX_SHOWN = 20;
/** Bounds recursive schemas; bodies are not nested more deeply. */
const MAX_DEPTH = 200;

export function explainRefusal(schema: TSchema, value: unknown): Refusal {
  const found = new Explainer(schema as SchemaNode).explain(schema as SchemaNode, value, '', 0);
  return found ?? { path: '', problem: 'does not match the schema' };
}

class Explainer {
  readonly #defs: Record<string, SchemaNode>;

  constructor(root: SchemaNode) {
    this.#defs = root.$defs ?? {};
  }

  explain(schema: SchemaNode, value: unknown, path: string, depth: number): Found | undefined {
    if (depth > MAX_DEPTH) return undefined;
    if (schema.$ref !== undefined) {
      const target = this.#defs[schema.$ref.replace(/^#\/\$defs\//, '')];
      return target && this.explain(target, value, path, depth);
    }
    const union = schema.anyOf ?? schema.oneOf;
    if (union) return this.#explainUnion(union, value, path, depth);
    for (const part of schema.allOf ?? []) {
      const found = this.explain(part, value, path, depth);
      if (found) return found;
    }
    if (schema.const !== undefined) {
      return value === schema.const ? undefined : wrongValue(path, depth, [schema.const]);
    }
    if (schema.enum) return schema.enum.includes(value) ? undefined : wrongValue(path, depth, schema.enum);
    if (schema.type !== undefined && !kindsOf(schema).some((kind) => isKind(value, kind))) {
      return { path, depth, problem: `must be ${listKinds(kindsOf(schema))}`, wrongBranch: true };
    }
    if (Array.isArray(value)) return this.#explainArray(schema, value, path, depth);
    if (typeof value === 'object' && value !== null) {
      return this.#explainObject(schema, value as Record<string, unknown>, path, depth);
    }
    return explainScalar(schema, value, path, depth);
  }

  #explainArray(schema: SchemaNode, value: unknown[], path: string, depth: number): Found | undefined {
    if (schema.minItems !== undefined && value.length < schema.minItems) {
      return refusal(path, depth, `must have at least ${count(schema.minItems, 'item')}`);
    }
    if (schema.maxItems !== undefined && value.length > schema.maxItems) {
      return refusal(path, depth, `must have at most ${count(schema.maxItems, 'item')}`);
    }
    if (schema.items) {
      for (const [index, item] of value.entries()) {
        const found = this.explain(schema.items, item, `${path}[${index}]`, depth + 1);
        if (found) return found;
      }
    }
    return explainRest(schema, value, path, depth);
  }

  #explainObject(schema: SchemaNode, value: Record<string, unknown>, path: string, depth: number): Found | undefined {
    const { properties = {} } = schema;
    for (const name of schema.required ?? []) {
      if (Object.hasOwn(value, name) && value[name] !== undefined) continue;
      return refusal(path + keyStep(name, path === ''), depth + 1, 'is required');
    }
    for (const [key, item] of Object.entries(value)) {
      const step = path + keyStep(key, path === '');
      const part = Object.hasOwn(properties, key) ? properties[key] : additional(schema, key);
      if (part === false) return refusal(step, depth + 1, 'is not a known field');
      const found = part && item !== undefined ? this.explain(part, item, step, depth + 1) : undefined;
      if (found) return found;
    }
    return explainRest(schema, value, path, depth);
  }

  #explainUnion(union: SchemaNode[], value: unknown, path: string, depth: number): Found | undefined {
    const branches = this.#flatten(union);
    const refusals: Found[] = [];
    for (const branch of branches) {
      const found = this.explain(branch, value, path, depth);
      if (!found) return undefined;
      refusals.push(found);
    }
    const fitting = branches.filter((branch) => kindsOf(branch).some((kind) => isKind(value, kind)));
    if (fitting.length === 0 || fitting.every(isConstant)) return ofOtherKind(branches, path, depth);
    const tag = typeof value === 'object' && value !== null ? this.#tagOf(fitting) : undefined;
    if (tag === undefined) return deepest(refusals.filter((_, index) => fitting.includes(branches[index]!)));
    const given = (value as Record<string, unknown>)[tag];
    const suggested = fitting.filter((branch) => constants(branch.properties?.[tag]).includes(given));
    if (suggested.length > 0) return deepest(refusals.filter((_, index) => suggested.includes(branches[index]!)));
    const step = path + keyStep(tag, path === '');
    if (given === undefined) return refusal(step, depth + 1, 'is required');
    return wrongValue(step, depth + 1, [...new Set(fitting.flatMap((branch) => constants(branch.properties?.[tag])))]);
  }

  /** The branches, with references resolved and nested unions flattened. */
  #flatten(union: SchemaNode[], level = 0): SchemaNode[] {
    return union.flatMap((branch) => {
      const target = branch.$ref === undefined ? branch : this.#defs[branch.$ref.replace(/^#\/\$defs\//, '')];
      const inner = target?.anyOf ?? target?.oneOf;
      if (inner && level < 10) return this.#flatten(inner, level + 1);
      return target ? [target] : [];
    });
  }

  /** The property that is a constant in every branch. */
  #tagOf(branches: SchemaNode[]): string | undefined {
    const [first, ...others] = branches;
    return Object.keys(first?.properties ?? {}).find(
      (name) =>
        constants(first?.properties?.[name]).length > 0 &&
        others.every((branch) => constants(branch.properties?.[name]).length > 0),
    );
  }
}

function additional(schema: SchemaNode, key: string): SchemaNode | false | undefined {
  for (const [pattern, part] of Object.entries(schema.patternProperties ?? {})) {
    if (new RegExp(pattern, 'u').test(key)) return part;
  }
  const { additionalProperties } = schema;
  return additionalProperties === true ? undefined : additionalProperties;
}

function ofOtherKind(branches: SchemaNode[], path: string, depth: number): Found {
  const values = branches.flatMap(constants);
  const kinds = [...new Set(branches.filter((branch) => !isConstant(branch)).flatMap(kindsOf))];
  if (values.length === 0) return { path, depth, problem: `must be ${listKinds(kinds)}`, wrongBranch: true };
  const found = wrongValue(path, depth, values);
  return kinds.length === 0 ? found : { ...found, problem: `${found.problem}, or ${listKinds(kinds)}` };
}

function explainScalar(schema: SchemaNode, value: unknown, path: string, depth: number): Found | undefined {
  if (typeof value === 'number') {
    const { minimum, maximum, exclusiveMinimum, exclusiveMaximum } = schema;
    if (minimum !== undefined && value < minimum) return refusal(path, depth, `must be at least ${minimum}`);
    if (maximum !== undefined && value > maximum) return refusal(path, depth, `must be at most ${maximum}`);
    if (exclusiveMinimum !== undefined && value <= exclusiveMinimum) {
      return refusal(path, depth, `must be more than ${exclusiveMinimum}`);
    }
    if (exclusiveMaximum !== undefined && value >= exclusiveMaximum) {
      return refusal(path, depth, `must be less than ${exclusiveMaximum}`);
    }
  }
  return explainRest(schema, value, path, depth);
}

/** Explains the remaining keywords, in TypeBox's words where there is no text of our own. */
function explainRest(schema: SchemaNode, value: unknown, path: string, depth: number): Found | undefined {
  const [error] = Value.Errors(schema as TSchema, value);
  if (!error) return undefined;
  const { minLength, maxLength } = schema;
  if (error.keyword === 'minLength') {
    const problem = minLength === 1 ? 'must not be empty' : `must have at least ${count(minLength ?? 0, 'character')}`;
    return refusal(path, depth, problem);
  }
  if (error.keyword === 'maxLength') {
    return refusal(path, depth, `must have at most ${count(maxLength ?? 0, 'character')}`);
  }
  if (error.keyword === 'pattern') return refusal(path, depth, `must match ${schema.pattern}`);
  if (error.keyword === 'format') return refusal(path, depth, `must be a valid ${schema.format}`);
  return refusal(path, depth, error.message);
}

function refusal(path: string, depth: number, problem: string): Found {
  return { path, depth, problem, wrongBranch: false };
}

function wrongValue(path: string, depth: number, allowed: readonly unknown[]): Found {
  const shown = allowed.slice(0, MAX_SHOWN).map((value) => JSON.stringify(value));
  if (allowed.length > MAX_SHOWN) shown.push('...');
  const problem = shown.length === 1 ? `must be ${shown[0]}` : `must be one of ${shown.join(', ')}`;
  return { path, depth, problem, wrongBranch: true };
}

/** The most specific refusal: the deepest path, and among those a branch that was meant. */
function deepest(refusals: Found[]): Found | undefined {
  return refusals.reduce<Found | undefined>((best, found) => {
    if (!best) return found;
    if (found.depth !== best.depth) return found.depth > best.depth ? found : best;
    return best.wrongBranch && !found.wrongBranch ? found : best;
  }, undefined);
}

function isConstant(schema: SchemaNode): boolean {
  return schema.const !== undefined || schema.enum !== undefined;
}

function constants(schema: SchemaNode | undefined): unknown[] {
  if (!schema) return [];
  if (schema.const !== undefined) return [schema.const];
  if (schema.enum) return schema.enum;
  const union = schema.anyOf ?? schema.oneOf;
  return union?.every((branch) => constants(branch).length > 0) ? union.flatMap(constants) : [];
}

/** The JSON kinds that a schema without unions accepts; all of them if it does not say. */
function kindsOf(schema: SchemaNode): string[] {
  if (schema.type !== undefined) return Array.isArray(schema.type) ? schema.type : [schema.type];
  if (schema.const !== undefined) return [kindOf(schema.const)];
  if (schema.enum) return [...new Set(schema.enum.map(kindOf))];
  if (schema.allOf) return kindsOf(schema.allOf[0] ?? {});
  return schema.properties ? ['object'] : ['object', 'array', 'string', 'number', 'boolean', 'null'];
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}

function isKind(value: unknown, kind: string): boolean {
  if (kind === 'integer') return Number.isInteger(value);
  if (kind === 'number') return typeof value === 'number' && Number.isFinite(value);
  return kindOf(value) === kind;
}

const KIND_NAMES: Record<string, string> = {
  string: 'a string',
  number: 'a number',
  integer: 'an integer',
  boolean: 'true or false',
  array: 'an array',
  object: 'an object',
  null: 'null',
};

function listKinds(kinds: readonly string[]): string {
  const names = kinds.map((kind) => KIND_NAMES[kind] ?? kind);
  return names.length < 2 ? (names[0] ?? 'something else') : `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`;
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}
