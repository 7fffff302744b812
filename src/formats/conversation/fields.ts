/** Readers for members of untrusted JSON objects. */
export type Fields = Record<string, unknown>;

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !isRawNumber(value);
}

/** A number too large for a double, as kept by `parseJson`: the only prototype-less objects that it makes. */
function isRawNumber(value: object): boolean {
  return !(value instanceof Object) && 'rawJSON' in value;
}

export function fieldsOrUndefined(value: unknown): Fields | undefined {
  return isFields(value) ? value : undefined;
}

/** The value as an object; an empty object for anything else. */
export function fieldsOf(value: unknown): Fields {
  return isFields(value) ? value : {};
}

export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

export function textOrUndefined(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** The text if it is not empty. */
export function nonEmptyText(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** Whether the value is a time in Unix seconds; services write 0 when they give none. */
export function isTime(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0;
}

/** No answer has more tokens. A larger count is invalid, and the caller would be billed for it. */
const MOST_TOKENS = 1_000_000_000;

/**
 * A count of tokens or the like, 0 for an invalid value. All formats write whole numbers, but some services compute
 * fractions (Cohere bills in doubles): the nearest whole number, so that a part is never more than its total.
 */
export function countOf(value: unknown): number {
  return typeof value === 'number' && value > 0 && value <= MOST_TOKENS ? Math.round(value) : 0;
}

/**
 * Whether the value is a number that cannot be a real count, including numbers too large for a double. Estimate such a
 * count.
 */
export function isImpossibleCount(value: unknown): boolean {
  if (typeof value === 'number') return value < 0 || value > MOST_TOKENS;
  return typeof value === 'object' && value !== null && isRawNumber(value);
}

/** Whether a member has an effect: it is neither absent nor null nor an empty list. */
export function isPresent(value: unknown): boolean {
  return value !== undefined && value !== null && !(Array.isArray(value) && value.length === 0);
}

export function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The members not listed in `known`; undefined when there are none. */
export function restOf(value: Fields, known: readonly string[] | ReadonlySet<string>): Fields | undefined {
  let rest: Fields | undefined;
  for (const key of Object.keys(value)) {
    if (value[key] === undefined || ('has' in known ? known.has(key) : known.includes(key))) continue;
    rest ??= {};
    rest[key] = value[key];
  }
  return rest;
}

/** A reported count; undefined if it is missing or impossible (negative or far too large). */
export function reportedCount(value: unknown): number | undefined {
  return typeof value !== 'number' || isImpossibleCount(value) ? undefined : countOf(value);
}
