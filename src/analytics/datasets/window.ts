/** The days that a dataset covers. */
import { invalidField } from '../../base/errors.ts';
import { readDay } from '../../base/timestamp.ts';

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
  const until = end === undefined ? today : readDay('end_date', end) + DAY_MS;
  const from = start === undefined ? until - DEFAULT_DAYS * DAY_MS : readDay('start_date', start);
  if (until > today + DAY_MS) throw invalidField('end_date', 'must not be in the future');
  if (from >= until) throw invalidField('start_date', 'must not be after end_date');
  if (until - from > MAX_DAYS * DAY_MS)
    throw invalidField('start_date', `must be at most ${MAX_DAYS} days before end_date`);
  return { from, until };
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
