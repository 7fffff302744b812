/** The days on which a model or workspace had requests, by the daily totals: a list of its generations skips all others. */
import type { Queryable } from '../../storage/database.ts';

const DAY_MS = 86_400_000;
/** Days that are looked up first. Each further step looks up four times as many. */
const FIRST_STEP = 31;
const STEP_GROWTH = 4;

interface Sought {
  organizationId: string;
  models: readonly string[] | undefined;
  workspaceId: string | undefined;
  /** Of `created_at`, in ms; `until` is exclusive. */
  from: number;
  until: number;
}

/** A run of days, in ms; `until` is exclusive. */
interface Days {
  from: number;
  until: number;
}

/**
 * Runs of days that have every row that is sought, and as few others as the totals can tell; newest first. Rows whose day
 * the totals do not contain yet are found too (`summed`).
 */
export async function* daysWith(tx: Queryable, sought: Sought): AsyncGenerator<Days> {
  const span = await spanOf(tx, sought);
  if (span === undefined) return;
  for (let until = span.until, step = FIRST_STEP; until > span.from; step *= STEP_GROWTH) {
    const from = Math.max(span.from, until - step * DAY_MS);
    yield* runsOf(await named(tx, sought, { from, until }));
    until = from;
  }
}

/** Whole days. */
async function spanOf(tx: Queryable, { organizationId, from, until }: Sought): Promise<Days | undefined> {
  const [span] = await tx.query<{ first: number | null; last: number | null }>(
    `select extract(epoch from least(t.first, l.first)) * 1000.0::float8 as first,
            extract(epoch from greatest(t.last, l.last)) * 1000.0::float8 as last
       from (select min(day)::timestamp as first, max(day)::timestamp as last
               from generation_model_days where organization_id = $1) t,
            (select min(created_at) at time zone 'UTC' as first, max(created_at) at time zone 'UTC' as last
               from generations where not summed and organization_id = $1) l`,
    [organizationId],
  );
  if (span === undefined || span.first === null || span.last === null) return undefined;
  return {
    from: startOfDay(Math.max(Number(span.first), from)),
    until: startOfDay(Math.min(Number(span.last), until)) + DAY_MS,
  };
}

/** Starts of days, newest first. */
async function named(tx: Queryable, { organizationId, models, workspaceId }: Sought, { from, until }: Days) {
  const rows = await tx.query<{ day: string }>(
    `select day::text as day from (
       select day from generation_model_days
        where organization_id = $1 and day >= $2::timestamp::date and day < $3::timestamp::date
          and ($4::text[] is null or model = any($4)) and ($5::text is null or workspace_id = $5)
       union
       select (created_at at time zone 'UTC')::date from generations
        where not summed and organization_id = $1 and created_at >= $2::timestamptz and created_at < $3::timestamptz
     ) days order by day desc`,
    [organizationId, new Date(from).toISOString(), new Date(until).toISOString(), models ?? null, workspaceId ?? null],
  );
  return rows.map(({ day }) => Date.parse(day));
}

function runsOf(starts: readonly number[]): Days[] {
  const runs: Days[] = [];
  for (const from of starts) {
    const last = runs.at(-1);
    if (last?.from === from + DAY_MS) last.from = from;
    else runs.push({ from, until: from + DAY_MS });
  }
  return runs;
}

function startOfDay(ms: number): number {
  return ms - (((ms % DAY_MS) + DAY_MS) % DAY_MS);
}
