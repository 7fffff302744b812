/** Filters on the attributes of files, as OpenAI defines them for searches. */
import { invalidField } from '../base/errors.ts';

type Attribute = string | number | boolean;
export type Attributes = Readonly<Record<string, Attribute>>;

/** Whether a file with these attributes may be found. */
export type Filter = (attributes: Attributes) => boolean;

const MOST_CONDITIONS = 100;
const DEEPEST = 8;
const LONGEST_LIST = 100;

const ORDERED: Readonly<Record<string, (one: number, other: number) => boolean>> = {
  gt: (one, other) => one > other,
  gte: (one, other) => one >= other,
  lt: (one, other) => one < other,
  lte: (one, other) => one <= other,
};
const TYPES = ['eq', 'ne', 'gt', 'gte', 'lt', 'lte', 'in', 'nin', 'and', 'or'];

/** @param path of the filter, for errors @throws GatewayError 400 */
export function readFilter(value: unknown, path: string): Filter {
  return new Reader().filter(value, path, 1);
}

class Reader {
  #conditions = 0;

  filter(value: unknown, path: string, depth: number): Filter {
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      throw invalidField(path, 'must be an object');
    this.#conditions += 1;
    if (this.#conditions > MOST_CONDITIONS)
      throw invalidField(path, `is one more condition than the ${MOST_CONDITIONS} of a filter`);
    const { type, key, value: wanted, filters } = value as Record<string, unknown>;
    if (type === 'and' || type === 'or') {
      if (depth > DEEPEST) throw invalidField(path, `is nested deeper than ${DEEPEST}`);
      if (!Array.isArray(filters) || filters.length === 0)
        throw invalidField(`${path}.filters`, 'must be a non-empty list');
      const all = filters.map((each, index) => this.filter(each, `${path}.filters[${index}]`, depth + 1));
      return type === 'and'
        ? (attributes) => all.every((each) => each(attributes))
        : (attributes) => all.some((each) => each(attributes));
    }
    if (typeof type !== 'string' || !TYPES.includes(type))
      throw invalidField(`${path}.type`, `must be one of ${TYPES.join(', ')}`);
    if (typeof key !== 'string' || key === '') throw invalidField(`${path}.key`, 'must be the name of an attribute');
    return comparison(type, key, wanted, `${path}.value`);
  }
}

function comparison(type: string, key: string, wanted: unknown, path: string): Filter {
  const of = (attributes: Attributes) => (Object.hasOwn(attributes, key) ? attributes[key] : undefined);
  if (type === 'in' || type === 'nin') {
    if (!Array.isArray(wanted) || wanted.length > LONGEST_LIST || !wanted.every(isAttribute)) {
      throw invalidField(path, `must be a list of at most ${LONGEST_LIST} texts, numbers or booleans`);
    }
    return (attributes) => wanted.some((each) => each === of(attributes)) === (type === 'in');
  }
  if (!isAttribute(wanted)) throw invalidField(path, 'must be a text, a number or a boolean');
  const compare = ORDERED[type];
  if (compare === undefined) return (attributes) => (of(attributes) === wanted) === (type === 'eq');
  if (typeof wanted !== 'number') throw invalidField(path, `must be a number for ${type}`);
  return (attributes) => {
    const value = of(attributes);
    return typeof value === 'number' && compare(value, wanted);
  };
}

function isAttribute(value: unknown): value is Attribute {
  return ['string', 'number', 'boolean'].includes(typeof value);
}
