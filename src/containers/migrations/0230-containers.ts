import type { Migration } from '../../storage/migrate.ts';

export const containers: Migration = {
  name: '0230-containers',
  sql: `
    create table containers (
      id uuid primary key,
      organization_id text not null,
      workspace_id uuid not null references workspaces (id),
      key_id uuid not null,
      -- On the wire: chosen by the client, or made up.
      name text not null,
      -- Null: no network.
      domains jsonb,
      -- Files of the workspace that were copied in, by their ids.
      copied jsonb not null,
      -- The files as the last use left them; null before it.
      blob_id uuid references blobs (id),
      bytes bigint not null,
      -- Rises with each use that may have changed files.
      version integer not null,
      created_at timestamptz not null,
      used_at timestamptz not null,
      expires_at timestamptz not null,
      -- The use that has it now, as long as it renews its claim.
      holder uuid,
      held_until timestamptz,
      unique (key_id, name)
    );
    create index containers_by_expiry on containers (expires_at);
    create index containers_of_workspace on containers (workspace_id);
    create table container_files (
      container_id uuid not null references containers (id) on delete cascade,
      id text not null,
      path text not null,
      bytes bigint not null,
      changed_at timestamptz not null,
      primary key (container_id, id)
    );
  `,
};
