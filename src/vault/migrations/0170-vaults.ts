import type { Migration } from '../../storage/migrate.ts';

export const vaults: Migration = {
  name: '0170-vaults',
  sql: `
    create table vaults (
      id uuid primary key,
      organization_id text not null references organizations,
      -- Of the owner; that of a workspace's own vault is the workspace itself.
      workspace_id uuid not null,
      owner_type text not null check (owner_type in ('workspace', 'intern')),
      owner_id text not null,
      -- The key of its secrets, encrypted, see sealing/. A rotation replaces it and counts the version up.
      data_key bytea not null,
      key_version integer not null check (key_version > 0),
      created_at timestamptz not null,
      unique (owner_type, owner_id),
      foreign key (organization_id, workspace_id) references workspaces (organization_id, id)
    );
    create index vaults_workspace on vaults (workspace_id);

    create table vault_secrets (
      vault_id uuid not null references vaults on delete cascade,
      name text collate "C" not null,
      hosts text[] not null,
      fingerprint text not null,
      -- Bound to vault, name and hosts: it does not decrypt where one of them is another.
      sealed bytea not null,
      created_at timestamptz not null,
      updated_at timestamptz not null,
      primary key (vault_id, name)
    );
  `,
};
