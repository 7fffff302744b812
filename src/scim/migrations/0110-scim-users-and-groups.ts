import type { Migration } from '../../storage/migrate.ts';

export const scimUsersAndGroups: Migration = {
  name: '0110-scim-users-and-groups',
  sql: `
    alter table api_keys drop constraint api_keys_kind_check;
    alter table api_keys add constraint api_keys_kind_check check (kind in ('inference', 'management', 'scim'));
    alter table api_keys drop constraint api_keys_check;
    alter table api_keys add constraint api_keys_workspace_check
      check ((kind = 'inference') = (workspace_id is not null));

    -- Who an identity provider says there is. The active ones have a row in members.
    create table scim_users (
      user_id text primary key references users,
      organization_id text not null references organizations,
      user_name text not null,
      external_id text,
      active boolean not null,
      -- By their names in the schemas, userName and active among them.
      attributes jsonb not null,
      -- Told by the identity provider, or asked of it by a sync job.
      source text not null check (source in ('push', 'pull')),
      version bigint not null default 1,
      created_at timestamptz not null,
      updated_at timestamptz not null
    );
    create unique index scim_users_name on scim_users (organization_id, lower(user_name));
    create index scim_users_external on scim_users (organization_id, external_id);
    create index scim_users_oldest on scim_users (organization_id, created_at, user_id);

    create table scim_groups (
      id uuid primary key,
      organization_id text not null references organizations,
      display_name text not null,
      external_id text,
      -- Those of schemas that nobody here knows.
      attributes jsonb not null,
      source text not null check (source in ('push', 'pull')),
      version bigint not null default 1,
      created_at timestamptz not null,
      updated_at timestamptz not null,
      unique (organization_id, id)
    );
    create unique index scim_groups_name on scim_groups (organization_id, lower(display_name));
    create index scim_groups_oldest on scim_groups (organization_id, created_at, id);

    create table scim_group_members (
      group_id uuid not null references scim_groups on delete cascade,
      user_id text not null references scim_users on delete cascade,
      primary key (group_id, user_id)
    );
    create index scim_group_members_user on scim_group_members (user_id);
  `,
};
