import type { Migration } from '../../storage/migrate.ts';

/** Reservations that outlive their process. The amounts are rows of `spend_leases` under the id of the hold. */
export const holds: Migration = {
  name: '0028-holds',
  sql: `
    create table spend_holds (
      id text primary key,
      -- The budget windows that count its rows: [{"id", "includeByok"}].
      windows jsonb not null,
      created_at timestamptz not null
    );
  `,
};
