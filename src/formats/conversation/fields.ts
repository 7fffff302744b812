/** Reading members of JSON objects whose shape nobody has promised. */
export type Fields = Record<string, unknown>;

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !isRawNumber(value);
}

/** A number that a double cannot hold, as `parseJson` keeps it: the one object without a prototype that it makes. */
function isRawNumber(value: object): boolean {
  return Object.getPrototypeOf(value) === null && 'rawJSON' in value;
}

/** The value as an object; an empty one when it is none. */
export function fieldsOf(value: unknown): Fields {
  return isFields(value) ? value : {};
}

export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

export function textOrUndefined(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** No answer has more tokens. A larger count is rubbish, and somebody would pay for it. */
const MOST_TOKENS = 1_000_000_000;

/** A count of tokens or the like: never negative, never a fraction, whatever the upstream wrote; 0 for rubbish. */
export function countOf(value: unknown): number {
  return typeof value === 'number' && value > 0 && value <= MOST_TOKENS ? Math.round(value) : 0;
}

/** The value is a number that no answer can have, also one of more digits than a double: what it counts is better estimated. */
export function isImpossibleCount(value: unknown): boolean {
  if (typeof value === 'number') return value < 0 || value > MOST_TOKENS;
  return typeof value === 'object' && value !== null && isRawNumber(value);
}

export function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The members that are not named in `known`; undefined when there are none. */
export function restOf(value: Fields, known: readonly string[]): Fields | undefined {
  let rest: Fields | undefined;
  for (const key of Object.keys(value)) {
    if (known.includes(key) || value[key] === undefined) continue;
    rest ??= {};
    rest[key] = value[key];
  }
  return rest;
}
