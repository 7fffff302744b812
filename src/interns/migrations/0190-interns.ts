import type { Migration } from '../../storage/migrate.ts';

export const interns: Migration = {
  name: '0190-interns',
  sql: `
    create table interns (
      id uuid primary key,
      organization_id text not null,
      workspace_id uuid not null,
      -- Null: of a key that belongs to the organization itself.
      creator_user_id text,
      name text not null,
      description text,
      instructions text,
      model text,
      status text not null check (status in
        ('queued', 'provisioning', 'running', 'failed', 'stopped', 'destroying', 'destroy_failed')),
      -- Counts provisioning, suspension and deletion: work that began under another number is out of date.
      epoch integer not null check (epoch > 0),
      hostname text,
      -- {step_label, step_number, total_steps}
      progress jsonb,
      last_failure_message text,
      vault_id uuid references vaults on delete set null,
      attached_vault_id uuid references vaults on delete set null,
      -- Of the request that created it. A null key stands for one that is derived from the body.
      idempotency_key text,
      body_sha256 bytea not null,
      provision_on_create boolean not null,
      -- When it first ran.
      provisioned_at timestamptz,
      -- The caller accepted that its workspace is not archived.
      loss_acknowledged boolean not null default false,
      created_at timestamptz not null,
      updated_at timestamptz not null,
      foreign key (organization_id, workspace_id) references workspaces (organization_id, id)
    );
    create unique index interns_name on interns (workspace_id, coalesce(creator_user_id, ''), name);
    create unique index interns_idempotency on interns (workspace_id, coalesce(creator_user_id, ''), idempotency_key);
    create index interns_newest on interns (workspace_id, id desc);
    create index interns_at_work on interns (status) where status in ('queued', 'provisioning', 'destroying');
  `,
};
