import type { Migration } from '../../storage/migrate.ts';

/** Every member of the organization belongs to its default workspace, so that one has no rows here. */
export const workspaceMembers: Migration = {
  name: '0051-workspace-members',
  sql: `
    create table workspace_members (
      id uuid primary key,
      organization_id text not null,
      workspace_id uuid not null,
      user_id text not null,
      -- Given by an identity provider, which alone may take it away.
      scim_managed boolean not null default false,
      created_at timestamptz not null,
      unique (workspace_id, user_id),
      foreign key (organization_id, workspace_id) references workspaces (organization_id, id),
      -- Who leaves the organization leaves its workspaces.
      foreign key (organization_id, user_id) references members (organization_id, user_id) on delete cascade
    );
    create index workspace_members_user on workspace_members (organization_id, user_id);
  `,
};
