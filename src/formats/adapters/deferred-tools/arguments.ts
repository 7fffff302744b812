/**
 * Checks call arguments against the tool's JSON Schema. Both are untrusted (client and model), so the work is bounded:
 * anything undecided within the bound passes. Regular expressions are not evaluated.
 */
import { type Fields, fieldsOf, isFields, listOf, textOf } from '../../conversation/fields.ts';

const MAX_STEPS = 50_000;
const MAX_DEPTH = 100;

/** @returns the first violation, starting with its path; undefined when the value is valid */
export function argumentsProblem(value: unknown, schema: unknown): string | undefined {
  return new SchemaCheck(schema).problemOf(value, schema, '', 0);
}

class SchemaCheck {
  readonly #root: unknown;
  #steps = 0;

  constructor(root: unknown) {
    this.#root = root;
  }

  problemOf(value: unknown, schema: unknown, path: string, depth: number): string | undefined {
    if (schema === false) return problemAt(path, 'is not allowed');
    this.#steps += 1;
    if (!isFields(schema) || this.#steps > MAX_STEPS || depth > MAX_DEPTH) return undefined;
    const reference = schema['$ref'];
    if (typeof reference === 'string') {
      const problem = this.problemOf(value, this.#resolve(reference), path, depth + 1);
      if (problem !== undefined) return problem;
    }
    return (
      valueProblem(value, schema, path) ??
      this.#alternatives(value, schema, path, depth) ??
      (isFields(value) ? this.#members(value, schema, path, depth) : undefined) ??
      (Array.isArray(value) ? this.#items(value, schema, path, depth) : undefined)
    );
  }

  /** Resolves references within the schema; external ones allow any value. */
  #resolve(reference: string): unknown {
    if (!reference.startsWith('#')) return true;
    let at: unknown = this.#root;
    for (const step of reference.slice(1).split('/').slice(1)) {
      const key = step.replaceAll('~1', '/').replaceAll('~0', '~');
      at = Array.isArray(at) ? at[Number(key)] : Object.hasOwn(fieldsOf(at), key) ? fieldsOf(at)[key] : undefined;
    }
    return at;
  }

  #alternatives(value: unknown, schema: Fields, path: string, depth: number): string | undefined {
    for (const each of listOf(schema['allOf'])) {
      const problem = this.problemOf(value, each, path, depth + 1);
      if (problem !== undefined) return problem;
    }
    const some = listOf(schema['anyOf']);
    if (some.length > 0) {
      const problems = this.#tryAll(value, some, path, depth);
      if (problems.length === some.length) return problems[0];
    }
    const one = listOf(schema['oneOf']);
    if (one.length > 0) {
      const problems = this.#tryAll(value, one, path, depth);
      if (problems.length === one.length) return problems[0];
      if (one.length - problems.length > 1 && this.#steps <= MAX_STEPS)
        return problemAt(path, 'fits several alternatives');
    }
    return undefined;
  }

  #tryAll(value: unknown, schemas: readonly unknown[], path: string, depth: number): string[] {
    return schemas.flatMap((each) => this.problemOf(value, each, path, depth + 1) ?? []);
  }

  #members(value: Fields, schema: Fields, path: string, depth: number): string | undefined {
    for (const name of listOf(schema['required'])) {
      if (typeof name === 'string' && !Object.hasOwn(value, name)) return problemAt(join(path, name), 'is missing');
    }
    const known = fieldsOf(schema['properties']);
    const others = isFields(schema['patternProperties']) ? undefined : schema['additionalProperties'];
    for (const [name, member] of Object.entries(value)) {
      const at = join(path, name);
      const problem = Object.hasOwn(known, name)
        ? this.problemOf(member, known[name], at, depth + 1)
        : others === false
          ? problemAt(at, 'is not a parameter')
          : this.problemOf(member, others, at, depth + 1);
      if (problem !== undefined) return problem;
    }
    return undefined;
  }

  #items(value: readonly unknown[], schema: Fields, path: string, depth: number): string | undefined {
    const { minItems: min, maxItems: max, items } = schema;
    if (typeof min === 'number' && value.length < min) return problemAt(path, `must have ${min} items or more`);
    if (typeof max === 'number' && value.length > max) return problemAt(path, `must have ${max} items or fewer`);
    const first = listOf(schema['prefixItems']);
    for (const [index, item] of value.entries()) {
      const problem = this.problemOf(item, index < first.length ? first[index] : items, `${path}[${index}]`, depth + 1);
      if (problem !== undefined) return problem;
    }
    return undefined;
  }
}

function valueProblem(value: unknown, schema: Fields, path: string): string | undefined {
  const types = typeof schema['type'] === 'string' ? [schema['type']] : listOf(schema['type']).map(textOf);
  if (types.length > 0 && !types.some((type) => isOfType(value, type))) {
    return problemAt(path, `must be of type ${types.join(' or ')}`);
  }
  if (Array.isArray(schema['enum']) && !schema['enum'].some((each) => same(each, value))) {
    return problemAt(path, `must be one of ${JSON.stringify(schema['enum'].slice(0, 20))}`);
  }
  if (Object.hasOwn(schema, 'const') && !same(schema['const'], value)) {
    return problemAt(path, `must be ${JSON.stringify(schema['const'])}`);
  }
  if (typeof value === 'number') return numberProblem(value, schema, path);
  return typeof value === 'string' ? lengthProblem(value, schema, path) : undefined;
}

function numberProblem(value: number, schema: Fields, path: string): string | undefined {
  const { minimum, maximum, exclusiveMinimum: above, exclusiveMaximum: below } = schema;
  if (typeof minimum === 'number' && value < minimum) return problemAt(path, `must be ${minimum} or more`);
  if (typeof maximum === 'number' && value > maximum) return problemAt(path, `must be ${maximum} or less`);
  if (typeof above === 'number' && value <= above) return problemAt(path, `must be more than ${above}`);
  if (typeof below === 'number' && value >= below) return problemAt(path, `must be less than ${below}`);
  return undefined;
}

function lengthProblem(value: string, schema: Fields, path: string): string | undefined {
  const { minLength: min, maxLength: max } = schema;
  if (typeof min !== 'number' && typeof max !== 'number') return undefined;
  // Length in characters, not UTF-16 units.
  const length = [...value].length;
  if (typeof min === 'number' && length < min) return problemAt(path, `must have ${min} characters or more`);
  if (typeof max === 'number' && length > max) return problemAt(path, `must have ${max} characters or fewer`);
  return undefined;
}

function isOfType(value: unknown, type: string): boolean {
  switch (type) {
    case 'null':
      return value === null;
    case 'array':
      return Array.isArray(value);
    case 'object':
      return isFields(value);
    case 'integer':
      return Number.isInteger(value);
    case 'string':
    case 'number':
    case 'boolean':
      return typeof value === type;
    default:
      return true;
  }
}

function same(one: unknown, other: unknown): boolean {
  return one === other || (typeof one === 'object' && JSON.stringify(one) === JSON.stringify(other));
}

function join(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`;
}

function problemAt(path: string, problem: string): string {
  return `${path === '' ? 'arguments' : path} ${problem}`;
}
