import type { Migration } from '../../storage/migrate.ts';

export const sealingKeys: Migration = {
  name: '0090-sealing-keys',
  sql: `
    -- One row: a known text under the key of the installation, which itself is not in the database.
    create table sealing_canary (
      id integer primary key check (id = 1),
      sealed bytea not null
    );

    -- The keys that values are sealed under, wrapped in the key of the installation.
    create table sealing_keys (
      purpose text not null,
      version integer not null check (version > 0),
      wrapped bytea not null,
      created_at timestamptz not null,
      primary key (purpose, version)
    );
  `,
};
