import type { Migration } from '../../storage/migrate.ts';

export const byokKeys: Migration = {
  name: '0091-byok-keys',
  sql: `
    create table byok_keys (
      id uuid primary key,
      organization_id text not null references organizations,
      -- null: for every workspace of the organization.
      workspace_id uuid,
      -- As the customer named it: the id of a configured provider, or the usual name of a service.
      provider text not null,
      name text,
      -- Of the credential, what may be shown.
      label text not null,
      -- The credential itself, see sealing/.
      sealed bytea not null,
      sealed_at timestamptz not null,
      sort_order integer not null,
      disabled boolean not null,
      is_fallback boolean not null,
      is_required boolean not null,
      is_byok_only boolean not null,
      declared_zdr boolean,
      -- null: all. Keys by their rows, so that one that gets another secret stays.
      allowed_models text[],
      allowed_key_ids uuid[],
      allowed_user_ids text[],
      created_at timestamptz not null,
      updated_at timestamptz,
      check (not (is_fallback and is_byok_only)),
      foreign key (organization_id, workspace_id) references workspaces (organization_id, id)
    );

    create index byok_keys_order on byok_keys (organization_id, provider, sort_order, id);
    create index byok_keys_workspace on byok_keys (workspace_id);
  `,
};
