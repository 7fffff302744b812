import type { Migration } from '../../storage/migrate.ts';

/**
 * Whether a row is in the sums by day. A process of a version that knows nothing of the sums may go on entering rows while
 * and after the schema is migrated; its rows come without a word about it, so they are not in the sums and can be found
 * (`sumLateRows`). The table is locked from its first statement on, so no row comes between the sums, which are made anew
 * here, and the day from which rows say whether they are in them.
 */
export const summedRows: Migration = {
  name: '0026-summed-rows',
  sql: `
    alter table generations add column summed boolean not null default true;
    alter table generations alter column summed set default false;
    -- Of no row, as long as every process is of a version that knows the sums.
    create index generations_not_summed on generations (created_at) where not summed;

    delete from generation_days;
    insert into generation_days
    select organization_id, (created_at at time zone 'UTC')::date, workspace_id, key_id, model,
      coalesce(endpoint_id, ''), coalesce(max(provider_name), ''), count(*),
      coalesce(sum(input_tokens + cache_read_tokens + cache_write_5m_tokens + cache_write_1h_tokens), 0),
      coalesce(sum(output_tokens), 0), coalesce(sum(reasoning_tokens), 0), sum(cost_nano), sum(byok_nano)
    from generations
    group by 1, 2, 3, 4, 5, 6;
  `,
};
