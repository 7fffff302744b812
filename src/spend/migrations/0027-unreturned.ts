import type { Migration } from '../../storage/migrate.ts';

export const unreturned: Migration = {
  name: '0027-unreturned',
  sql: `
    alter table spend_processes
      add column host text,
      -- Its journal is entered. Its leases are the bounds of the requests that were open when it died.
      add column replayed_at timestamptz,
      add column open_requests integer,
      -- An operator released its leases. The row stays until its journal comes back.
      add column released_at timestamptz;
  `,
};
