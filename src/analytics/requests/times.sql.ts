/**
 * Finds the days and hours that have requests of a model, provider and so on, so that a list of generations skips all others.
 * They come from the totals; an hour that is not counted yet (`generation_hours_to_count`) may have any requests.
 */
import { hoursToCount } from '../../spend/index.ts';
import type { Queryable } from '../../storage/database.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Days that are looked up first. Each further step looks up four times as many. */
const FIRST_STEP = 31;
const STEP_GROWTH = 4;
/** Days whose hours are looked up at once. */
const REFINED_DAYS = 8;

export type Outcome = 'succeeded' | 'failed' | 'cancelled' | 'guarded';

interface Search {
  organizationId: string;
  models: readonly string[] | undefined;
  workspaceId: string | undefined;
  provider: string | undefined;
  apiType: string | undefined;
  errorType: string | undefined;
  outcome: Outcome | undefined;
  /** Checked in addition to the others, because the totals of keys have no other columns. */
  keyIds: readonly string[] | undefined;
  /** Of `created_at`, in ms; `until` is exclusive. */
  from: number;
  until: number;
}

/** In ms; `until` is exclusive. */
interface Run {
  from: number;
  until: number;
}

/** A whole day or hour, and the most requests that it can have. */
interface Slot extends Run {
  requests: number;
}

/** Runs of time that contain every matching row, and as few others as the totals can tell; newest first. */
export async function* timesWith(tx: Queryable, search: Search): AsyncGenerator<Run> {
  const span = await spanOf(tx, search);
  if (span === undefined) return;
  for (let until = span.until, step = FIRST_STEP; until > span.from; step *= STEP_GROWTH) {
    const from = Math.max(span.from, until - step * DAY_MS);
    const slots = await slotsOf(tx, search, { from, until });
    if (isRare(slots)) yield* byHour(tx, search, slots);
    else yield* runsOf(slots);
    until = from;
  }
}

/** True if an hour has less than one request on average, so that many have none. */
function isRare(slots: readonly Slot[]): boolean {
  const hours = slots.reduce((sum, { from, until }) => sum + (until - from) / HOUR_MS, 0);
  return slots.reduce((sum, { requests }) => sum + requests, 0) < hours;
}

/** Whole days. */
async function spanOf(tx: Queryable, { organizationId, from, until }: Search): Promise<Run | undefined> {
  const [span] = await tx.query<{ first: Date | null; last: Date | null }>(
    `select least(t.first, n.first) as first, greatest(t.last, n.last) as last
       from (select min(at) as first, max(at) as last from generation_totals where organization_id = $1 and grain = 'hour') t,
            (select min(hour) as first, max(hour) as last from generation_hours_to_count) n`,
    [organizationId],
  );
  if (span === undefined || span.first === null || span.last === null) return undefined;
  return {
    from: startOfDay(Math.max(span.first.getTime(), from)),
    until: startOfDay(Math.min(span.last.getTime(), until)) + DAY_MS,
  };
}

/** By the conditions on totals; only rows tell whether a guardrail matched. */
const OUTCOMES: Readonly<Record<Outcome, string>> = {
  succeeded: 'errors is null and coalesce(cancelled, 0) < requests',
  failed: 'errors > 0',
  cancelled: 'cancelled > 0',
  guarded: 'true',
};

/** Days, but hours where a day has hours that are not counted; newest first. */
async function slotsOf(tx: Queryable, search: Search, { from, until }: Run): Promise<Slot[]> {
  const hours = await hoursToCount(tx, from, until);
  const cut = [...new Set(hours.map(startOfDay))];
  const days = await slotsWithin(tx, search, 'day', [from], (until - from) / DAY_MS);
  const counted = cut.length === 0 ? [] : await slotsWithin(tx, search, 'hour', cut, 1);
  return newestFirst([
    ...days.filter(({ from }) => !cut.includes(from)),
    ...counted.filter(({ from }) => !hours.includes(from)),
    ...hours.map((from) => ({ from, until: from + HOUR_MS, requests: 0 })),
  ]);
}

/** Replaces days by their hours, a few days at a time. */
async function* byHour(tx: Queryable, search: Search, slots: readonly Slot[]): AsyncGenerator<Run> {
  for (let at = 0; at < slots.length; at += REFINED_DAYS) {
    const some = slots.slice(at, at + REFINED_DAYS);
    const isDay = ({ from, until }: Slot) => until - from === DAY_MS;
    const days = some.filter(isDay).map(({ from }) => from);
    const hours = days.length === 0 ? [] : await slotsWithin(tx, search, 'hour', days, 1);
    yield* runsOf(newestFirst([...hours, ...some.filter((each) => !isDay(each))]));
  }
}

/** The slots of a grain within `length` days from each of `starts`. */
async function slotsWithin(
  tx: Queryable,
  search: Search,
  grain: 'day' | 'hour',
  starts: readonly number[],
  length: number,
): Promise<Slot[]> {
  const parameters: unknown[] = [search.organizationId, starts.map((ms) => new Date(ms)), length * 24];
  const conditions: string[] = [];
  const where = (value: unknown, condition: (parameter: string) => string) => {
    if (value !== undefined) conditions.push(condition(`$${parameters.push(value)}`));
  };
  where(search.models, (value) => `model = any(${value})`);
  where(search.workspaceId, (value) => `workspace_id = ${value}`);
  where(search.provider, (value) => `provider_name = ${value}`);
  where(search.apiType, (value) => `api_type = ${value}`);
  where(search.errorType, (value) => `error_type = ${value}`);
  if (search.outcome !== undefined) conditions.push(OUTCOMES[search.outcome]);
  const within = (grain: string) => `organization_id = $1 and grain = '${grain}' and at >= start
    and at < start + $3 * interval '1 hour'`;
  where(
    search.keyIds,
    (value) => `at in (select at from generation_totals where ${within(`key_${grain}`)} and key_id = any(${value}))`,
  );
  const rows = await tx.query<{ at: Date; requests: string }>(
    `select at, requests from unnest($2::timestamptz[]) start, lateral (
       select at, sum(requests) as requests from generation_totals
       where ${[within(grain), ...conditions].join(' and ')} group by at
     ) times`,
    parameters,
  );
  const ms = grain === 'day' ? DAY_MS : HOUR_MS;
  return rows.map(({ at, requests }) => ({
    from: at.getTime(),
    until: at.getTime() + ms,
    requests: Number(requests),
  }));
}

function newestFirst(times: readonly Slot[]): Slot[] {
  return times.toSorted((a, b) => b.from - a.from);
}

function runsOf(times: readonly Run[]): Run[] {
  const runs: Run[] = [];
  for (const { from, until } of times) {
    const last = runs.at(-1);
    if (last?.from === until) last.from = from;
    else runs.push({ from, until });
  }
  return runs;
}

function startOfDay(ms: number): number {
  return ms - (((ms % DAY_MS) + DAY_MS) % DAY_MS);
}
