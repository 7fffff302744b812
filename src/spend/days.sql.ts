/**
 * Totals of generations by day, key, model and endpoint (`generation_days`). Triggers add them up without the key
 * (`generation_model_days`).
 */
import type { Database, Queryable } from '../storage/database.ts';

/** Totals of one day, key, model and endpoint. */
export interface DaySum {
  organization_id: string;
  workspace_id: string;
  key_id: string;
  /** As `2026-11-28`. */
  day: string;
  model: string;
  endpoint_id: string;
  provider_name: string;
  requests: bigint;
  prompt_tokens: bigint;
  completion_tokens: bigint;
  reasoning_tokens: bigint;
  cost_nano: bigint;
  byok_nano: bigint;
}

const COLUMNS = `organization_id, day, workspace_id, key_id, model, endpoint_id, provider_name, requests, prompt_tokens,
  completion_tokens, reasoning_tokens, cost_nano, byok_nano`;

/** The columns of a row that the daily totals are computed from. */
export const DAY_COLUMNS = `created_at, organization_id, workspace_id, key_id, model, endpoint_id, provider_name,
  input_tokens, cache_read_tokens, cache_write_5m_tokens, cache_write_1h_tokens, output_tokens, reasoning_tokens,
  cost_nano, byok_nano`;

/** Select list of the totals, over rows in a table or common table expression. */
export const DAY_SUMS = `organization_id, workspace_id, key_id, (created_at at time zone 'UTC')::date::text as day, model,
  coalesce(endpoint_id, '') as endpoint_id, coalesce(max(provider_name), '') as provider_name, count(*) as requests,
  coalesce(sum(input_tokens + cache_read_tokens + cache_write_5m_tokens + cache_write_1h_tokens), 0)::bigint
    as prompt_tokens,
  coalesce(sum(output_tokens), 0)::bigint as completion_tokens,
  coalesce(sum(reasoning_tokens), 0)::bigint as reasoning_tokens,
  sum(cost_nano)::bigint as cost_nano, sum(byok_nano)::bigint as byok_nano`;

/** Grouping of `DAY_SUMS`. */
export const DAY_KEYS = `organization_id, workspace_id, key_id, (created_at at time zone 'UTC')::date, model,
  coalesce(endpoint_id, '')`;

/**
 * Call it in the transaction that enters the rows. It updates in primary key order, so transactions cannot deadlock.
 */
export async function addToDays(tx: Queryable, sums: readonly DaySum[]): Promise<void> {
  if (sums.length === 0) return;
  await tx.query(
    `insert into generation_days as own (${COLUMNS})
     select ${COLUMNS} from jsonb_populate_recordset(null::generation_days, $1::jsonb)
     order by organization_id, day, workspace_id, key_id, model, endpoint_id
     on conflict (organization_id, day, workspace_id, key_id, model, endpoint_id) do update set
       provider_name = greatest(own.provider_name, excluded.provider_name),
       requests = own.requests + excluded.requests,
       prompt_tokens = own.prompt_tokens + excluded.prompt_tokens,
       completion_tokens = own.completion_tokens + excluded.completion_tokens,
       reasoning_tokens = own.reasoning_tokens + excluded.reasoning_tokens,
       cost_nano = own.cost_nano + excluded.cost_nano,
       byok_nano = own.byok_nano + excluded.byok_nano`,
    [JSON.stringify(sums.map(columnsOf))],
  );
}

const LATE_ROWS = `
  with late as (
    select id as late_id, created_at as late_at from generations where not summed
    limit 10000 for update skip locked
  ), marked as (
    update generations set summed = true from late
    where id = late_id and created_at = late_at and not summed
    returning ${DAY_COLUMNS}
  )
  select ${DAY_SUMS} from marked group by ${DAY_KEYS}`;

/**
 * Adds rows that a process of a version without these totals entered; each once, even if several processes do this at
 * the same time. One statement on an empty index if there are none.
 */
export async function sumLateRows(database: Pick<Database, 'transaction'>): Promise<void> {
  for (let found = true; found; ) {
    found = await database.transaction(async (tx) => {
      const sums = await tx.query<DaySum>(LATE_ROWS);
      await addToDays(tx, sums);
      return sums.length > 0;
    });
  }
}

/** The columns only, with values that JSON can represent. */
function columnsOf(sum: DaySum): Record<string, string> {
  return {
    organization_id: sum.organization_id,
    day: sum.day,
    workspace_id: sum.workspace_id,
    key_id: sum.key_id,
    model: sum.model,
    endpoint_id: sum.endpoint_id,
    provider_name: sum.provider_name,
    requests: String(sum.requests),
    prompt_tokens: String(sum.prompt_tokens),
    completion_tokens: String(sum.completion_tokens),
    reasoning_tokens: String(sum.reasoning_tokens),
    cost_nano: String(sum.cost_nano),
    byok_nano: String(sum.byok_nano),
  };
}

/** @param from first day; `until` is exclusive */
export async function dropDays(tx: Queryable, from: Date, until: Date): Promise<void> {
  await tx.query('delete from generation_days where day >= $1::timestamp::date and day < $2::timestamp::date', [
    from.toISOString(),
    until.toISOString(),
  ]);
}
