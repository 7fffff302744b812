/** Points in time as clients write them. */
import { invalidField } from './errors.ts';

const TIMESTAMP = /^(\d{4}-\d{2}-(\d{2}))[Tt]\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:[Zz]|[+-]\d{2}:\d{2})$/;

let shownSecond = Number.NaN;
let shown = '';

/** As Date.toISOString, for times that come by the thousand a second. @param ms since 1970 UTC, whole */
export function isoTime(ms: number): string {
  const second = Math.floor(ms / 1000);
  if (second !== shownSecond) {
    shown = new Date(second * 1000).toISOString().slice(0, -'000Z'.length);
    shownSecond = second;
  }
  return `${shown}${String(ms - second * 1000).padStart(3, '0')}Z`;
}

/**
 * Reads a time with at least seconds precision and a zone; a day that the month lacks is refused and not moved to the
 * next. Throws GatewayError 400 with the path.
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
