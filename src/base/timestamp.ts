/** Times as clients write and read them. */
import { invalidField } from './errors.ts';

const TIMESTAMP = /^(\d{4}-\d{2}-\d{2})[Tt]\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:[Zz]|[+-]\d{2}:\d{2})$/;

let shownMs = Number.NaN;
let shown = '';

/** Like Date.toISOString, fast for bursts of equal times. @param ms since 1970 UTC */
export function isoTime(ms: number): string {
  if (ms !== shownMs) {
    shown = new Date(ms).toISOString();
    shownMs = ms;
  }
  return shown;
}

export function unixSeconds(time: Date): number {
  return Math.floor(time.getTime() / 1000);
}

/** Beyond it `toISOString` writes years that other readers do not know, such as `+010000`. */
const LAST_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999);
const FIRST_MS = Date.parse('0001-01-01T00:00:00Z');

/**
 * A time with at least seconds precision and a zone, in the years 1 to 9999 UTC. Undefined for other texts, and for days
 * that do not exist in their month.
 */
export function timestampOf(text: string): Date | undefined {
  const [, day] = TIMESTAMP.exec(text) ?? [];
  const time = new Date(text);
  // NaN is in no range.
  const known = time.getTime() >= FIRST_MS && time.getTime() <= LAST_MS;
  return day !== undefined && known && isDay(day) ? time : undefined;
}

/** Throws GatewayError 400 with the path unless the text is one for `timestampOf`. */
export function readTimestamp(path: string, text: string): Date {
  const time = timestampOf(text);
  if (time === undefined) {
    throw invalidField(path, 'must be an ISO 8601 time with seconds and zone, such as 2030-01-31T23:59:59Z');
  }
  return time;
}

const DAY = /^\d{4}-\d{2}-\d{2}$/;

/** The start of a day in UTC, in ms. Throws GatewayError 400 with the path for other texts and days that do not exist. */
export function readDay(path: string, text: string): number {
  if (!DAY.test(text) || !isDay(text)) throw invalidField(path, 'must be a day such as 2026-01-31');
  return Date.parse(`${text}T00:00:00Z`);
}

/** Date.parse reads the 31st of February as a day in March. @param text `yyyy-mm-dd` */
function isDay(text: string): boolean {
  const ms = Date.parse(`${text}T00:00:00Z`);
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(text);
}
