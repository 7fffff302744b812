/** Lenient readers of JSON that somebody else wrote: what does not fit its place reads as absent, never as an exception. */
import { isFields, isImpossibleCount } from '../conversation/fields.ts';

export type JsonObject = Record<string, unknown>;

export function object(value: unknown): JsonObject | undefined {
  return isFields(value) ? value : undefined;
}

export function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The text, or '' for anything else. */
export function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** The text when it is one with content. */
export function someText(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** A count of tokens: anything but a positive number that an answer can have is 0. */
export function count(value: unknown): number {
  return typeof value === 'number' && value > 0 && !isImpossibleCount(value) ? Math.trunc(value) : 0;
}

/** The members that are not in `known`; undefined when there are none. */
export function rest(value: JsonObject, known: ReadonlySet<string>): JsonObject | undefined {
  let others: JsonObject | undefined;
  for (const key of Object.keys(value)) {
    if (!known.has(key) && value[key] !== undefined) {
      others ??= {};
      others[key] = value[key];
    }
  }
  return others;
}

/** A moment in Unix seconds; services write 0 where they name none. */
export function isTime(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0;
}
