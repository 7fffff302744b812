import type { Migration } from '../../storage/migrate.ts';

export const scimMappings: Migration = {
  name: '0111-scim-mappings',
  sql: `
    create table scim_group_mappings (
      id uuid primary key,
      organization_id text not null,
      scim_group_id uuid not null,
      workspace_id uuid not null,
      role text not null check (role in ('admin', 'member')),
      created_at timestamptz not null,
      updated_at timestamptz not null,
      unique (scim_group_id, workspace_id),
      foreign key (organization_id, scim_group_id) references scim_groups (organization_id, id) on delete cascade,
      foreign key (organization_id, workspace_id) references workspaces (organization_id, id)
    );
    create index scim_group_mappings_workspace on scim_group_mappings (workspace_id);

    alter table workspace_members
      -- The highest role that mappings grant; null: none does. With scim_managed the row is there for nothing else.
      add column scim_role text check (scim_role in ('admin', 'member')),
      -- Of a membership that a mapping left behind when it ended; null: the member's role in the organization.
      add column manual_role text check (manual_role in ('admin', 'member'));

    create table scim_sync_jobs (
      id uuid primary key,
      organization_id text not null references organizations,
      status text not null check (status in ('queued', 'running', 'succeeded', 'failed')),
      -- How often it was begun: a process that dies leaves it to the next.
      attempts integer not null default 0,
      synced_groups integer,
      deleted_groups integer,
      error_message text,
      created_at timestamptz not null,
      started_at timestamptz,
      finished_at timestamptz
    );
    create index scim_sync_jobs_unfinished on scim_sync_jobs (created_at, id) where status in ('queued', 'running');
  `,
};
