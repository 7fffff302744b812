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

/** A count of tokens or the like: never negative, never a fraction, whatever the upstream wrote; 0 for no number. */
export function countOf(value: unknown): number {
  if (typeof value !== 'number' || !(value > 0)) return 0;
  return Math.min(Math.round(value), Number.MAX_SAFE_INTEGER);
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
