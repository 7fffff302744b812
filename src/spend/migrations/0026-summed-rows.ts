import type { Migration } from '../../storage/migrate.ts';

/**
 * Marks rows that are included in the daily totals. A process of an older version may enter rows during and after the
 * migration; those are unmarked, so `sumLateRows` finds them. The first statement locks the table, so that no row
 * arrives between the recomputation of the totals and the change of the default.
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
