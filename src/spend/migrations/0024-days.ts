import type { Migration } from '../../storage/migrate.ts';

/**
 * Totals of generations by UTC day, key, model and endpoint, for queries over weeks that would read millions of rows.
 * The transaction that enters rows updates them, so they always equal the sum of the rows. They are updated all day
 * long, hence the free space for HOT updates.
 */
export const days: Migration = {
  name: '0024-days',
  sql: `
    create table generation_days (
      organization_id text collate "C" not null,
      day date not null,
      workspace_id text collate "C" not null,
      key_id text collate "C" not null,
      model text collate "C" not null,
      -- '' where no endpoint was asked.
      endpoint_id text collate "C" not null,
      provider_name text not null,
      requests bigint not null,
      prompt_tokens bigint not null,
      completion_tokens bigint not null,
      reasoning_tokens bigint not null,
      cost_nano bigint not null,
      byok_nano bigint not null,
      primary key (organization_id, day, workspace_id, key_id, model, endpoint_id)
    ) with (fillfactor = 50);

    insert into generation_days
    select organization_id, (created_at at time zone 'UTC')::date, workspace_id, key_id, model,
      coalesce(endpoint_id, ''), coalesce(max(provider_name), ''), count(*),
      coalesce(sum(input_tokens + cache_read_tokens + cache_write_5m_tokens + cache_write_1h_tokens), 0),
      coalesce(sum(output_tokens), 0), coalesce(sum(reasoning_tokens), 0), sum(cost_nano), sum(byok_nano)
    from generations
    group by 1, 2, 3, 4, 5, 6;
  `,
};
