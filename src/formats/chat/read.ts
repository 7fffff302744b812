/** Lenient readers for untrusted JSON: a value of the wrong type reads as absent and never throws. */
import { isFields, isImpossibleCount } from '../conversation/fields.ts';

export type JsonObject = Record<string, unknown>;

export function object(value: unknown): JsonObject | undefined {
  return isFields(value) ? value : undefined;
}

export function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The text, or '' for any other type. */
export function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** The text if it is not empty. */
export function someText(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** A token count; 0 for anything but a plausible positive number. */
export function count(value: unknown): number {
  return typeof value === 'number' && value > 0 && !isImpossibleCount(value) ? Math.trunc(value) : 0;
}

/** The members not in `known`; undefined when there are none. */
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

/** Whether the value is a time in Unix seconds; services write 0 when they give none. */
export function isTime(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0;
}
