import type { Migration } from '../../storage/migrate.ts';

export const internEndpoints: Migration = {
  name: '0193-intern-endpoints',
  sql: `
    -- Where other processes reach a process that runs interns. Rows of processes that have none of this are of an older version:
    -- these have ended, and what they held is free.
    delete from intern_processes;
    alter table intern_processes
      add column host text not null,
      add column port integer not null,
      -- The key that both ends of a connection know, encrypted.
      add column sealed_key bytea not null;
  `,
};
