/** Divides a range of time among the totals of days and of hours, and the rows of the ledger. Pure. */
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** In ms; `until` is exclusive. */
export interface Span {
  grain: 'day' | 'hour' | 'rows';
  from: number;
  until: number;
}

/** Bounds the length of the statement. */
const MOST_SPANS = 12;

/**
 * Every moment of the range is in one span. Whole days are read as such, unless `byHour`.
 * @param noted starts of hours that are not counted, ascending; if there are many, the hours between them are read from rows
 *   too
 */
export function spansOf(from: number, until: number, noted: readonly number[], byHour: boolean): Span[] {
  const hours = noted.map((hour) => ({ from: hour, until: hour + HOUR_MS }));
  const spans = spansBetween(from, until, hours, byHour);
  if (spans.length <= MOST_SPANS) return spans;
  return spansBetween(from, until, [{ from: hours[0]!.from, until: hours.at(-1)!.until }], byHour);
}

function spansBetween(
  from: number,
  until: number,
  noted: readonly Pick<Span, 'from' | 'until'>[],
  byHour: boolean,
): Span[] {
  if (!hasWholeHour(from, until)) return [{ grain: 'rows', from, until }];
  const spans: Span[] = [];
  const add = (grain: Span['grain'], from: number, until: number) => {
    const last = spans.at(-1);
    if (from >= until) return;
    if (last?.grain === 'rows' && grain === 'rows') last.until = until;
    else spans.push({ grain, from, until });
  };
  const firstHour = ceiling(from, HOUR_MS);
  const lastHour = floor(until, HOUR_MS);
  let at = firstHour;
  add('rows', from, firstHour);
  for (const next of [...noted, { from: lastHour, until: lastHour }]) {
    const end = Math.min(Math.max(next.from, at), lastHour);
    const firstDay = byHour ? end : Math.min(ceiling(at, DAY_MS), end);
    const lastDay = Math.max(firstDay, floor(end, DAY_MS));
    add('hour', at, firstDay);
    add('day', firstDay, lastDay);
    add('hour', lastDay, end);
    at = Math.max(at, Math.min(next.until, lastHour));
    add('rows', end, at);
  }
  add('rows', lastHour, until);
  return spans;
}

/** True if the range has a whole hour, so that totals can answer for a part of it. */
export function hasWholeHour(from: number, until: number): boolean {
  return ceiling(from, HOUR_MS) < floor(until, HOUR_MS);
}

function floor(ms: number, unit: number): number {
  return Math.floor(ms / unit) * unit;
}

function ceiling(ms: number, unit: number): number {
  return Math.ceil(ms / unit) * unit;
}
