/** The days that a dataset covers. */
import { invalidField } from '../../base/errors.ts';

export const DAY_MS = 86_400_000;
const DEFAULT_DAYS = 30;
const MAX_DAYS = 366;

export interface Window {
  /** Start of the first day, and the end of the last one. */
  from: number;
  until: number;
}

/** By default the 30 days up to yesterday. @throws GatewayError 400 */
export function windowOf(start: string | undefined, end: string | undefined, now: number): Window {
  const today = Math.floor(now / DAY_MS) * DAY_MS;
  const until = end === undefined ? today : dayOf('end_date', end) + DAY_MS;
  const from = start === undefined ? until - DEFAULT_DAYS * DAY_MS : dayOf('start_date', start);
  if (until > today + DAY_MS) throw invalidField('end_date', 'must not be in the future');
  if (from >= until) throw invalidField('start_date', 'must not be after end_date');
  if (until - from > MAX_DAYS * DAY_MS)
    throw invalidField('start_date', `must be at most ${MAX_DAYS} days before end_date`);
  return { from, until };
}

function dayOf(field: string, text: string): number {
  const day = Date.parse(`${text}T00:00:00Z`);
  // Date.parse reads the 31st of February as a day in March.
  if (Number.isNaN(day) || !new Date(day).toISOString().startsWith(text)) throw invalidField(field, 'must be a day');
  return day;
}

export function dateOf(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}

export function metaOf({ from, until }: Window, now: number) {
  return {
    as_of: new Date(now).toISOString(),
    start_date: dateOf(from),
    end_date: dateOf(until - DAY_MS),
    version: 'v1' as const,
  };
}
