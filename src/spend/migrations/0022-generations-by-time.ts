import type { Migration } from '../../storage/migrate.ts';

/**
 * Rows come in the order of their time, so a few bytes for every hundred of them tell where a day lies: next to nothing for
 * an insert, where a tree would cost one descent a row.
 */
export const generationsByTime: Migration = {
  name: '0022-generations-by-time',
  sql: `
    create index generations_time on generations using brin (created_at) with (pages_per_range = 32, autosummarize = on);
  `,
};
