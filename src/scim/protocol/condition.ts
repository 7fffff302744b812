/** Filters (RFC 7644, section 3.4.2.2): parsed by `scim2-parse-filter`, then resolved to known attributes. */
import type { Filter } from 'scim2-parse-filter';
import { timestampOf } from '../../base/timestamp.ts';
import { type Attribute, type AttributePath, attributePathOf, named, type ResourceType } from './attributes.ts';
import { refusal } from './fault.ts';
import { libraries } from './libraries.ts';

type Operator = 'eq' | 'ne' | 'co' | 'sw' | 'ew' | 'gt' | 'ge' | 'lt' | 'le';

export interface Comparison {
  readonly op: 'compare';
  readonly operator: Operator;
  /** Compared with the last attribute of the path. */
  readonly value: string | boolean | null;
}

/** The test of one attribute. */
export type Test = Comparison | { readonly op: 'present' };

export type Condition =
  | { readonly op: 'and' | 'or'; readonly parts: readonly Condition[] }
  | { readonly op: 'not'; readonly part: Condition }
  | { readonly op: 'test'; readonly attributePath: AttributePath; readonly test: Test }
  /** One item of a list satisfies all of it; paths inside refer to attributes of the item. */
  | { readonly op: 'item'; readonly attributePath: AttributePath; readonly part: Condition };

const MAX_LENGTH = 4_096;
const MAX_TERMS = 100;
const MAX_DEPTH = 32;
const ORDERED = new Set<Operator>(['gt', 'ge', 'lt', 'le']);

/** Throws 400 invalidFilter, with the problem, for an unsupported filter. */
export function readFilter(type: ResourceType, text: string): Condition {
  return new Reader((path) => attributePathOf(type, path)).read(text);
}

/** A filter in brackets; its names refer to attributes of the list's items. */
export function readItemFilter({ extension, attribute }: AttributePath, text: string): Condition {
  return new Reader((path) => subPathOf(extension, attribute, path)).read(text);
}

function subPathOf(extension: string | undefined, attribute: Attribute, path: string): AttributePath | undefined {
  const sub = named(attribute.subAttributes ?? [], path);
  return sub && { extension, attribute: sub, sub: undefined };
}

class Reader {
  readonly #pathOf: (path: string) => AttributePath | undefined;
  /** String values of the filter. The parser gets their numbers, because it does not know JSON escapes. */
  #texts: string[] = [];
  #terms = 0;

  constructor(find: (path: string) => AttributePath | undefined) {
    this.#pathOf = find;
  }

  read(text: string): Condition {
    if (text.length > MAX_LENGTH) throw refusal('invalidFilter', `the filter has more than ${MAX_LENGTH} characters`);
    // JSON strings contain no raw control characters, and the parser is slow on many of them.
    if (/\p{Cc}/u.test(text)) throw refusal('invalidFilter', 'the filter contains a control character');
    let filter: Filter;
    try {
      const numbered = text.replace(QUOTED, (quoted) => `"${this.#texts.push(unquoted(quoted)) - 1}"`);
      filter = libraries().parse(numbered.replace(WORDS, (word) => word.toLowerCase()));
    } catch (error) {
      // The parser recurses for each bracket.
      if (error instanceof RangeError) throw refusal('invalidFilter', 'the filter has too many parts');
      throw refusal('invalidFilter', `the filter cannot be parsed: ${(error as Error).message.slice(0, 200)}`);
    }
    return this.#condition(filter, 0);
  }

  #condition(filter: Filter, depth: number): Condition {
    this.#terms += 1;
    if (this.#terms > MAX_TERMS || depth > MAX_DEPTH) throw refusal('invalidFilter', 'the filter has too many parts');
    switch (filter.op) {
      case 'and':
      case 'or':
        return { op: filter.op, parts: filter.filters.map((each) => this.#condition(each, depth + 1)) };
      case 'not':
        return { op: 'not', part: this.#condition(filter.filter, depth + 1) };
      case '[]': {
        const attributePath = this.#attributePath(filter.attrPath);
        if (!attributePath.attribute.multiValued || attributePath.sub || !attributePath.attribute.subAttributes) {
          throw refusal('invalidFilter', `${filter.attrPath} is not a list of objects and cannot have brackets`);
        }
        const within = new Reader((path) => subPathOf(attributePath.extension, attributePath.attribute, path));
        within.#terms = this.#terms;
        within.#texts = this.#texts;
        const part = within.#condition(filter.valFilter, depth + 1);
        this.#terms = within.#terms;
        return { op: 'item', attributePath: attributePath, part };
      }
      case 'pr':
        return { op: 'test', attributePath: this.#attributePath(filter.attrPath), test: { op: 'present' } };
      default: {
        const attributePath = this.#comparable(filter.attrPath);
        const given = typeof filter.compValue === 'string' ? this.#texts[Number(filter.compValue)] : filter.compValue;
        return {
          op: 'test',
          attributePath: attributePath,
          test: comparison(attributePath, filter.op, given, filter.attrPath),
        };
      }
    }
  }

  #attributePath(path: string): AttributePath {
    const attributePath = this.#pathOf(path);
    if (!attributePath) throw refusal('invalidFilter', `there is no attribute ${path.slice(0, 200)}`);
    if (attributePath.attribute.returned === 'never')
      throw refusal('invalidFilter', `${path} cannot be used in a filter`);
    return attributePath;
  }

  /** A complex attribute is compared by its `value`, as in `members eq "..."`. */
  #comparable(path: string): AttributePath {
    const attributePath = this.#attributePath(path);
    if (attributePath.sub || attributePath.attribute.type !== 'complex') return attributePath;
    const sub = named(attributePath.attribute.subAttributes ?? [], 'value');
    if (!sub) throw refusal('invalidFilter', `${path} is an object; name one of its attributes`);
    return { ...attributePath, sub };
  }
}

function comparison(attributePath: AttributePath, operator: Operator, given: unknown, path: string): Comparison {
  const { type } = attributePath.sub ?? attributePath.attribute;
  if (given === null) {
    if (operator !== 'eq' && operator !== 'ne')
      throw refusal('invalidFilter', `${path} can only be compared with null by eq or ne`);
    return { op: 'compare', operator, value: null };
  }
  if (type === 'boolean') {
    const word = String(given).toLowerCase();
    if (word !== 'true' && word !== 'false')
      throw refusal('invalidFilter', `${path} must be compared with true or false`);
    if (operator !== 'eq' && operator !== 'ne')
      throw refusal('invalidFilter', `${path} can only be compared with eq or ne`);
    return { op: 'compare', operator, value: word === 'true' };
  }
  if (typeof given !== 'string') throw refusal('invalidFilter', `${path} must be compared with a string in quotes`);
  if (given.includes('\0')) throw refusal('invalidFilter', 'the filter contains the character U+0000');
  if (!given.isWellFormed()) throw refusal('invalidFilter', 'the filter contains half of a surrogate pair');
  if (type === 'dateTime') {
    // The zone is optional in times of RFC 7643, section 2.3.5.
    const time = timestampOf(given) ?? timestampOf(`${given}Z`);
    if (time === undefined || ['co', 'sw', 'ew'].includes(operator))
      throw refusal('invalidFilter', `${path} must be compared with a complete time, such as 2030-01-31T00:00:00Z`);
    return { op: 'compare', operator, value: time.toISOString() };
  }
  if (type === 'binary' && ORDERED.has(operator))
    throw refusal('invalidFilter', `${path} can only be compared for equality`);
  return { op: 'compare', operator, value: given };
}

const QUOTED = /"(?:[^"\\]|\\.)*"/g;
/** Microsoft Entra sends `True`, which is not JSON. After an operator the word cannot be an attribute. */
const WORDS = /(?<=\s(?:eq|ne)\s+)(?:true|false|null)\b/gi;

/** Decodes a JSON string. If an escape is invalid, as in `DOMAIN\user`, the text is taken literally. */
function unquoted(quoted: string): string {
  try {
    return String(JSON.parse(quoted));
  } catch {
    return quoted.slice(1, -1);
  }
}

/** True if an item of a list, or a stored resource, satisfies the condition. */
export function holds(condition: Condition, value: Record<string, unknown>): boolean {
  switch (condition.op) {
    case 'and':
      return condition.parts.every((part) => holds(part, value));
    case 'or':
      return condition.parts.some((part) => holds(part, value));
    case 'not':
      return !holds(condition.part, value);
    case 'item':
      return valuesAt({ ...condition.attributePath, sub: undefined }, value).some((item) =>
        holds(condition.part, item as Record<string, unknown>),
      );
    case 'test': {
      const values = valuesAt(condition.attributePath, value);
      const { test, attributePath } = condition;
      if (test.op === 'present') return values.length > 0;
      if (test.value === null) return (values.length === 0) === (test.operator === 'eq');
      // An attribute without a value satisfies `ne`.
      if (values.length === 0) return test.operator === 'ne';
      return values.some((each) => compares(attributePath.sub ?? attributePath.attribute, each, test));
    }
  }
}

function valuesAt({ extension, attribute, sub }: AttributePath, value: Record<string, unknown>): unknown[] {
  const scope = extension === undefined ? value : (value[extension] as Record<string, unknown> | undefined);
  // Inside brackets the value is the item itself, whatever extension the list is from.
  const found = (scope ?? value)[attribute.name];
  const items = Array.isArray(found) ? found : [found];
  return items
    .map((item) => (sub ? (item as Record<string, unknown> | undefined)?.[sub.name] : item))
    .filter((item) => item !== undefined && item !== null);
}

function compares(attribute: Attribute, value: unknown, { operator, value: wanted }: Comparison): boolean {
  if (typeof value !== 'string' || typeof wanted !== 'string') return (value === wanted) === (operator === 'eq');
  if (attribute.type === 'dateTime') return ordered(Date.parse(value), Date.parse(wanted), operator);
  const fold = (text: string) => (attribute.caseExact ? text : text.toLowerCase());
  const [a, b] = [fold(value), fold(wanted)];
  switch (operator) {
    case 'co':
      return a.includes(b);
    case 'sw':
      return a.startsWith(b);
    case 'ew':
      return a.endsWith(b);
    default:
      return ordered(a, b, operator);
  }
}

function ordered<T extends string | number>(a: T, b: T, operator: Operator): boolean {
  switch (operator) {
    case 'ne':
      return a !== b;
    case 'gt':
      return a > b;
    case 'ge':
      return a >= b;
    case 'lt':
      return a < b;
    case 'le':
      return a <= b;
    default:
      return a === b;
  }
}
