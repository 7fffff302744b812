import type { Migration } from '../../storage/migrate.ts';

export const balances: Migration = {
  name: '0025-balances',
  sql: `
    -- What the command line has set; without a row the configuration's balance holds.
    create table account_balances (
      organization_id text primary key,
      -- null: without limit.
      balance_nano bigint check (balance_nano >= 0),
      -- The row goes when the configuration's balance holds again, and this does not begin anew.
      version bigint not null,
      is_set boolean not null,
      updated_at timestamptz not null
    );
  `,
};
