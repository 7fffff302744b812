import type { Migration } from '../../storage/migrate.ts';

export const freeItems: Migration = {
  name: '0165-free-items',
  sql: `
    -- The next items to take are at the front, and items that a process has taken are behind the present.
    create index batch_items_free on batch_items (batch_id, free_at, position) where outcome is null;
    drop index batch_items_open;
  `,
};
