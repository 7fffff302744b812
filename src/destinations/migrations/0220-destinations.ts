import type { Migration } from '../../storage/migrate.ts';

export const destinations: Migration = {
  name: '0220-destinations',
  sql: `
    create table destinations (
      id uuid primary key,
      organization_id text not null references organizations,
      workspace_id uuid not null,
      name text not null,
      type text not null,
      enabled boolean not null,
      -- As the wire shows it, secrets masked.
      config jsonb not null,
      -- JSON of the secrets by their paths in the config, see sealing/.
      sealed bytea not null,
      privacy_mode boolean not null,
      sampling_rate double precision not null,
      regions text[] not null,
      filter_rules jsonb,
      -- null: all.
      allowed_key_ids uuid[],
      sends_cost boolean not null,
      sends_identity boolean not null,
      sends_request_context boolean not null,
      created_at timestamptz not null,
      updated_at timestamptz not null,
      constraint destinations_name unique (workspace_id, name),
      foreign key (organization_id, workspace_id) references workspaces (organization_id, id)
    );

    -- What became of the deliveries, added up over all processes.
    create table destination_states (
      destination_id uuid primary key references destinations on delete cascade,
      delivered bigint not null,
      dropped bigint not null,
      delivered_at timestamptz,
      failed_at timestamptz,
      last_error text
    );

    -- Records that wait for a destination with durable delivery.
    create table destination_batches (
      id uuid primary key,
      destination_id uuid not null references destinations on delete cascade,
      -- JSON of a list of records. Not jsonb, which cannot hold U+0000.
      records text not null,
      record_count integer not null,
      attempts integer not null,
      created_at timestamptz not null,
      due_at timestamptz not null
    );

    create index destination_batches_due on destination_batches (due_at);
    create index destination_batches_destination on destination_batches (destination_id);
  `,
};
