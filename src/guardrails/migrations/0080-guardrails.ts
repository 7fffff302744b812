import type { Migration } from '../../storage/migrate.ts';

export const guardrails: Migration = {
  name: '0080-guardrails',
  sql: `
    create table guardrails (
      id uuid primary key,
      organization_id text not null references organizations,
      workspace_id uuid not null,
      -- Governs all of its workspace. Its id is derived from the workspace's, and the row is made when it is first set.
      is_default boolean not null,
      name text not null,
      description text,
      -- What it prescribes, as the wire has it; see settings.ts.
      settings jsonb not null,
      limit_nano bigint check (limit_nano > 0),
      reset_interval text check (reset_interval in ('daily', 'weekly', 'monthly')),
      include_byok_in_budgets boolean not null,
      -- Another one with every change, so that what was compiled is known to be current.
      revision uuid not null,
      created_at timestamptz not null,
      updated_at timestamptz,
      check ((limit_nano is null) = (reset_interval is null)),
      unique (organization_id, id),
      foreign key (organization_id, workspace_id) references workspaces (organization_id, id)
    );

    create unique index guardrails_default on guardrails (workspace_id) where is_default;
    create index guardrails_newest on guardrails (organization_id, workspace_id, created_at desc, id desc);

    create table guardrail_keys (
      -- A key has one guardrail at most.
      key_id uuid primary key references api_keys,
      id uuid not null unique,
      organization_id text not null,
      guardrail_id uuid not null,
      assigned_by text,
      created_at timestamptz not null,
      foreign key (organization_id, guardrail_id) references guardrails (organization_id, id) on delete cascade
    );

    create index guardrail_keys_newest on guardrail_keys (organization_id, created_at desc, id desc);
    create index guardrail_keys_guardrail on guardrail_keys (guardrail_id);

    create table guardrail_members (
      organization_id text not null,
      user_id text not null references users,
      id uuid not null unique,
      guardrail_id uuid not null,
      assigned_by text,
      created_at timestamptz not null,
      primary key (organization_id, user_id),
      foreign key (organization_id, guardrail_id) references guardrails (organization_id, id) on delete cascade
    );

    create index guardrail_members_guardrail on guardrail_members (guardrail_id);
  `,
};
