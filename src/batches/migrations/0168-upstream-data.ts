import type { Migration } from '../../storage/migrate.ts';

export const upstreamData: Migration = {
  name: '0168-upstream-data',
  sql: `
    -- What became of the data of native batches at their provider; null: none has ended. Of several, the worst is kept.
    alter table batches
      add column upstream_provider text,
      add column upstream_data text;
  `,
};
