import type { Migration } from '../../storage/migrate.ts';

export const processFacts: Migration = {
  name: '0030-process-facts',
  sql: `
    alter table spend_processes
      add column version text,
      add column started_at timestamptz;
  `,
};
