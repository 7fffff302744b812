import type { Migration } from '../../storage/migrate.ts';

export const unrunItems: Migration = {
  name: '0164-unrun-items',
  sql: `
    alter table batches
      -- Of the failed items, those that were cancelled or expired before they ran.
      add column cancelled integer not null default 0,
      add column expired integer not null default 0,
      add column cancelled_at timestamptz;
    update batches set
      cancelled = (select count(*) from batch_items where batch_id = batches.id and error ->> 'type' = 'batch_cancelled'),
      expired = (select count(*) from batch_items where batch_id = batches.id and error ->> 'type' = 'batch_expired')
      where state in ('cancelled', 'expired');
  `,
};
