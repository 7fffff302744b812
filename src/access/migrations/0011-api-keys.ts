import type { Migration } from '../../storage/migrate.ts';

export const apiKeys: Migration = {
  name: '0011-api-keys',
  sql: `
    create table api_keys (
      id uuid primary key,
      -- SHA-256 of the token, which itself is stored nowhere.
      hash text not null unique check (hash ~ '^[0-9a-f]{64}$'),
      kind text not null check (kind in ('inference', 'management')),
      organization_id text not null references organizations,
      workspace_id uuid,
      creator_user_id text references users,
      name text not null,
      label text not null,
      disabled boolean not null default false,
      expires_at timestamptz,
      limit_nano bigint check (limit_nano > 0),
      limit_reset text check (limit_reset in ('daily', 'weekly', 'monthly')),
      include_byok_in_limit boolean not null,
      external_user text,
      external_key_hash text,
      created_at timestamptz not null,
      updated_at timestamptz,
      -- A deleted key stays for the ledger that refers to it.
      deleted_at timestamptz,
      check ((kind = 'management') = (workspace_id is null)),
      foreign key (organization_id, workspace_id) references workspaces (organization_id, id)
    );

    create index api_keys_newest on api_keys (organization_id, workspace_id, created_at desc, id desc)
      where deleted_at is null;
    create index api_keys_creator on api_keys (creator_user_id);
  `,
};
