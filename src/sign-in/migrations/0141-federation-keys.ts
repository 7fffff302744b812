import type { Migration } from '../../storage/migrate.ts';

export const federationKeys: Migration = {
  name: '0141-federation-keys',
  sql: `
    -- What access tokens are signed with: one key at a time, and those before it while a token of theirs may live.
    create table federation_keys (
      -- RFC 7638 thumbprint: kid of the tokens.
      id text primary key,
      -- The private key as a JWK, under a key that is not in the database.
      sealed bytea not null,
      created_at timestamptz not null,
      -- When another one took its place.
      retired_at timestamptz
    );
    create unique index federation_keys_current on federation_keys ((true)) where retired_at is null;
  `,
};
