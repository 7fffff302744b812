/** Times as clients write and read them. */
import { invalidField } from './errors.ts';

const TIMESTAMP = /^(\d{4}-\d{2}-(\d{2}))[Tt]\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:[Zz]|[+-]\d{2}:\d{2})$/;

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

/**
 * Reads a time with at least seconds precision and a zone; a day that does not exist in the month is refused, not moved to
 * the next. Throws GatewayError 400 with the path.
 */
export function readTimestamp(path: string, text: string): Date {
  const match = TIMESTAMP.exec(text);
  const time = new Date(text);
  if (
    match === null ||
    Number.isNaN(time.getTime()) ||
    new Date(`${match[1]}T00:00:00Z`).getUTCDate() !== Number(match[2])
  ) {
    throw invalidField(path, 'must be an ISO 8601 time with seconds and zone, such as 2030-01-31T23:59:59Z');
  }
  return time;
}
