import type { Migration } from '../../storage/migrate.ts';

export const internHolders: Migration = {
  name: '0192-intern-holders',
  sql: `
    -- Processes that run interns.
    create table intern_processes (
      id uuid primary key,
      -- Of the operating system, see storage/owner.ts.
      owner jsonb not null,
      -- Renewed while it lives.
      seen_at timestamptz not null
    );

    -- Which process has the pipes of an intern's agent, or tears the intern down.
    create table intern_holders (
      intern_id uuid primary key,
      process_id uuid not null
    );

    -- Sandboxes whose interns are gone with their workspace, to be destroyed.
    create table intern_remains (
      intern_id uuid primary key
    );

    -- The workspaces of deleted interns.
    create table intern_archives (
      intern_id uuid primary key,
      organization_id text not null references organizations,
      workspace_id uuid not null,
      name text not null,
      blob_id uuid not null,
      bytes bigint not null,
      created_at timestamptz not null,
      foreign key (organization_id, workspace_id) references workspaces (organization_id, id)
    );
    create index intern_archives_workspace on intern_archives (workspace_id);
    create index intern_archives_oldest on intern_archives (created_at);
  `,
};
