import type { Migration } from '../../storage/migrate.ts';

export const workspaceSettings: Migration = {
  name: '0050-workspace-settings',
  sql: `
    alter table workspaces
      add column description text,
      add column created_by text,
      add column updated_at timestamptz,
      -- Counts every change of what the workspace prescribes, its budgets included.
      add column version bigint not null default 1,
      add column default_text_model text,
      add column default_image_model text,
      add column default_provider_sort text
        check (default_provider_sort in ('price', 'throughput', 'latency', 'exacto')),
      add column disabled_server_tools text[],
      -- Numbers of keys; null is every key.
      add column io_logging_api_key_ids bigint[],
      add column io_logging_sampling_rate double precision not null default 1,
      add column is_data_discount_logging_enabled boolean not null default false,
      add column is_observability_broadcast_enabled boolean not null default false,
      add column is_observability_io_logging_enabled boolean not null default false,
      add column include_byok_in_budgets boolean not null default false;
  `,
};
