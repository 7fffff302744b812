import type { Migration } from '../../storage/migrate.ts';

/**
 * Partitions rows by the month of acceptance (UTC), so that old months can be dropped as tables. A partition is created
 * when its first row arrives (`partitions/store.ts`). The key is id and time; the time of a request never changes.
 */
export const generationsByMonth: Migration = {
  name: '0021-generations-by-month',
  sql: `
    alter table generations rename to generations_before;
    alter table generations_before rename constraint generations_pkey to generations_before_pkey;
    create table generations (like generations_before) partition by range (created_at);
    alter table generations add primary key (id, created_at);

    do $$
    declare
      month timestamp;
    begin
      for month in select distinct date_trunc('month', created_at at time zone 'UTC') from generations_before loop
        execute format(
          'create table %I partition of generations for values from (%L) to (%L)',
          'generations_' || to_char(month, 'YYYY_MM'), month::text || '+00', (month + interval '1 month')::text || '+00'
        );
      end loop;
    end $$;

    insert into generations select * from generations_before;
    drop table generations_before;
  `,
};
