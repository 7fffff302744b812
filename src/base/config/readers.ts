/** Readers of single values. Their problems never contain the value: it may be a misplaced credential. */
import { type Nano, nanoFromUsd, type Price, parsePrice } from '../money.ts';
import { nearest } from '../nearest.ts';
import type { Field, Reader } from './field.ts';

type Shape = Record<string, Reader<unknown>>;
type Values<S extends Shape> = { [K in keyof S]: S[K] extends Reader<infer T> ? T | undefined : never };

/**
 * A mapping with exactly these members; each value is undefined when absent or wrong.
 * @param elsewhere returns the correct setting for a misplaced member
 */
export function mapping<S extends Shape>(
  field: Field,
  shape: S,
  required: readonly (keyof S & string)[] = [],
  elsewhere?: (name: string) => string | undefined,
) {
  const members = field.members(Object.keys(shape), required, elsewhere);
  if (!members) return undefined;
  const values: Record<string, unknown> = {};
  for (const [name, read] of Object.entries(shape)) {
    const member = members.get(name);
    values[name] = member ? read(member) : undefined;
  }
  return values as Values<S>;
}

export function text(field: Field): string | undefined {
  const scalar = field.scalar();
  if (!scalar) return undefined;
  if (typeof scalar.value !== 'string') return field.fail('must be a text (put it in quotes)');
  if (scalar.value.trim() === '') return field.fail('must not be empty');
  return scalar.value;
}

/** A string of a given form; the problem is `must be <form>`. */
export function textLike(pattern: RegExp, form: string): Reader<string> {
  return (field) => {
    const value = text(field);
    if (value === undefined) return undefined;
    return pattern.test(value) ? value : field.fail(`must be ${form}`);
  };
}

export function oneOf<T extends string>(words: readonly T[]): Reader<T> {
  return (field) => {
    const value = text(field);
    if (value === undefined) return undefined;
    const found = words.find((word) => word === value);
    if (found !== undefined) return found;
    const meant = nearest(value, words);
    return field.fail(
      meant === undefined ? `must be one of ${words.join(', ')}` : `is not known; did you mean ${meant}?`,
    );
  };
}

export function flag(field: Field): boolean | undefined {
  const scalar = field.scalar();
  if (!scalar) return undefined;
  const value = scalar.expanded && /^(true|false)$/.test(String(scalar.value)) ? scalar.value === 'true' : scalar.value;
  return typeof value === 'boolean' ? value : field.fail('must be true or false');
}

export function integer(least: number, most: number = Number.MAX_SAFE_INTEGER): Reader<number> {
  return (field) => {
    const scalar = field.scalar();
    if (!scalar) return undefined;
    const value = scalar.expanded && /^\d{1,15}$/.test(String(scalar.value)) ? Number(scalar.value) : scalar.value;
    if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most) return value;
    const range = most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`;
    return field.fail(`must be an integer ${range}`);
  };
}

const UNIT_MS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };
/** The maximum of a timer. */
const LONGEST_MS = 2 ** 31 - 1;

/** `500ms`, `5s`, `1.5s`, `2m`, `1h`, above zero; in milliseconds. */
export function duration(field: Field): number | undefined {
  const scalar = field.scalar();
  if (!scalar) return undefined;
  const milliseconds = parseDuration(String(scalar.value));
  if (milliseconds === undefined) return field.fail('must be a duration such as 500ms, 5s or 2m');
  return milliseconds >= 1 && milliseconds <= LONGEST_MS ? milliseconds : field.fail('must be from 1ms to 24 days');
}

/** Milliseconds of a text such as `1.5s`; undefined if it is not a duration. */
function parseDuration(value: string): number | undefined {
  const match = /^(\d{1,10}(?:\.\d{1,3})?)(ms|s|m|h)$/.exec(value.trim());
  return match ? Math.round(Number(match[1]) * UNIT_MS[match[2]!]!) : undefined;
}

/** A price in USD, as a decimal text so that no digit is lost. */
export function price(field: Field): Price | undefined {
  const scalar = field.scalar();
  if (!scalar) return undefined;
  if (typeof scalar.value !== 'string') return field.fail('must be a decimal text (put it in quotes), in USD');
  try {
    return parsePrice(scalar.value);
  } catch {
    return field.fail('must be a decimal text such as "0.000003", not negative and with at most 18 decimals');
  }
}

export function list<T>(read: Reader<T>): Reader<readonly T[]> {
  return (field) => {
    const items = field.items()?.map(read);
    return items?.filter((item) => item !== undefined) as T[] | undefined;
  };
}

/** A list whose items differ; `what` names them in the problem. */
export function distinct<T extends string>(read: Reader<T>): Reader<readonly T[]> {
  return (field) => {
    const seen = new Set<string>();
    return list<T>((item) => {
      const value = read(item);
      if (value !== undefined && seen.has(value)) return item.fail('occurs twice in this list');
      if (value !== undefined) seen.add(value);
      return value;
    })(field);
  };
}

/** An amount of money. */
export function usd(field: Field): Nano | undefined {
  const scalar = field.scalar();
  if (!scalar) return undefined;
  try {
    return nanoFromUsd(scalar.value as string | number);
  } catch {
    return field.fail('must be an amount of USD, not negative and with at most 9 decimals');
  }
}
