import type { Migration } from '../../storage/migrate.ts';

export const authCodes: Migration = {
  name: '0140-auth-codes',
  sql: `
    -- Codes that are exchanged for a key; deleted by the exchange.
    create table auth_codes (
      -- SHA-256 of the code, which itself is stored nowhere.
      hash text primary key check (hash ~ '^[0-9a-f]{64}$'),
      organization_id text not null references organizations,
      -- Who let the application in; null: the organization itself.
      user_id text references users,
      -- Hash of the management key that was given.
      key_hash text not null,
      callback_url text not null,
      challenge text,
      method text check (method in ('S256', 'plain')),
      -- Body of POST /keys.
      body jsonb not null,
      wrong_verifiers integer not null default 0,
      created_at timestamptz not null,
      expires_at timestamptz not null,
      check ((challenge is null) = (method is null))
    );
    create index auth_codes_end on auth_codes (expires_at);

    -- One row: what forms of the consent page are signed with.
    create table sign_in_secrets (
      id integer primary key check (id = 1),
      secret bytea not null
    );
  `,
};
