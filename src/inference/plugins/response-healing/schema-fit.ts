/**
 * Whether a value has the structure that a client's JSON Schema asks for. Only the keywords that decide the structure
 * are checked: a pattern of the client could take exponential time, and repairing a text does not change what it says.
 * Bounded: nested alternatives of a recursive schema could multiply without end.
 */
import { type Fields, fieldsOf, isFields, listOf } from '../../../formats/conversation/fields.ts';

const MAX_STEPS = 100_000;

export function fitsSchema(value: unknown, schema: unknown): boolean {
  return new Fitting(fieldsOf(schema)).fits(value, schema);
}

class Fitting {
  readonly #root: Fields;
  #steps = 0;

  constructor(root: Fields) {
    this.#root = root;
  }

  fits(value: unknown, schema: unknown): boolean {
    this.#steps += 1;
    // Beyond the bound nothing is known, which counts as a misfit: the text stays as the model wrote it.
    if (this.#steps > MAX_STEPS || schema === false) return false;
    if (!isFields(schema)) return true;
    if (typeof schema['$ref'] === 'string' && !this.fits(value, this.#resolve(schema['$ref']))) return false;
    return (
      hasType(value, schema['type']) &&
      isAmong(value, schema) &&
      this.#combined(value, schema) &&
      (isFields(value) ? this.#object(value, schema) : true) &&
      (Array.isArray(value) ? this.#array(value, schema) : true)
    );
  }

  #combined(value: unknown, { allOf, anyOf, oneOf }: Fields): boolean {
    if (!listOf(allOf).every((each) => this.fits(value, each))) return false;
    const alternatives = [anyOf, oneOf].filter((list) => Array.isArray(list) && list.length > 0);
    return alternatives.every((list) => listOf(list).some((each) => this.fits(value, each)));
  }

  #object(value: Fields, schema: Fields): boolean {
    const properties = fieldsOf(schema['properties']);
    const patterned = Object.keys(fieldsOf(schema['patternProperties'])).length > 0;
    if (!listOf(schema['required']).every((name) => typeof name !== 'string' || Object.hasOwn(value, name)))
      return false;
    return Object.entries(value).every(([name, member]) => {
      if (Object.hasOwn(properties, name)) return this.fits(member, properties[name]);
      return patterned || this.fits(member, schema['additionalProperties']);
    });
  }

  #array(value: readonly unknown[], { items, prefixItems }: Fields): boolean {
    const first = listOf(prefixItems);
    return value.every((item, index) => this.fits(item, index < first.length ? first[index] : items));
  }

  /** A schema within the same document (`#/$defs/node`); anything else allows every value. */
  #resolve(reference: string): unknown {
    if (!reference.startsWith('#')) return true;
    let found: unknown = this.#root;
    for (const step of reference.slice(1).split('/').slice(1)) {
      const key = step.replaceAll('~1', '/').replaceAll('~0', '~');
      found = isFields(found) && Object.hasOwn(found, key) ? found[key] : undefined;
    }
    return found ?? true;
  }
}

function hasType(value: unknown, type: unknown): boolean {
  const types = typeof type === 'string' ? [type] : listOf(type);
  return types.length === 0 || types.some((name) => isOfType(value, name));
}

function isOfType(value: unknown, type: unknown): boolean {
  switch (type) {
    case 'object':
      return isFields(value);
    case 'array':
      return Array.isArray(value);
    case 'null':
      return value === null;
    case 'integer':
      return Number.isInteger(value);
    case 'number':
    case 'string':
    case 'boolean':
      return typeof value === type;
    default:
      return true;
  }
}

function isAmong(value: unknown, schema: Fields): boolean {
  const same = (other: unknown) => other === value || JSON.stringify(other) === JSON.stringify(value);
  if ('const' in schema && !same(schema['const'])) return false;
  return !Array.isArray(schema['enum']) || schema['enum'].some(same);
}
