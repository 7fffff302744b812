import type { Migration } from '../../storage/migrate.ts';

export const batches: Migration = {
  name: '0160-batches',
  sql: `
    create table batches (
      id uuid primary key,
      organization_id text not null,
      workspace_id uuid not null references workspaces (id),
      key_hash text not null,
      region text not null,
      endpoint text not null,
      model text not null,
      provider jsonb,
      state text not null,
      created_at timestamptz not null,
      expires_at timestamptz not null,
      finalized_at timestamptz,
      total integer not null,
      completed integer not null,
      failed integer not null,
      usage jsonb,
      error text,
      purged_at timestamptz,
      seen_at timestamptz not null
    );
    -- Ids rise with time.
    create index batches_of_workspace on batches (workspace_id, id);
    create index batches_unfinished on batches (id)
      where state in ('validating', 'in_progress', 'finalizing', 'cancelling');
    create index batches_kept on batches (finalized_at) where finalized_at is not null and purged_at is null;
    -- Batches whose items are arriving. A process that dies leaves its line, by which the items are found and removed.
    create table batch_intakes (
      batch_id uuid primary key,
      created_at timestamptz not null
    );
    -- No reference to the batch: items are stored while they arrive, and the batch after them.
    create table batch_items (
      batch_id uuid not null,
      position integer not null,
      custom_id text not null,
      body bytea not null,
      bytes integer not null,
      -- The process that runs the item may keep it until free_at; then anyone may take it.
      claim uuid,
      free_at timestamptz not null,
      attempts integer not null default 0,
      -- completed or failed; null: no result yet.
      outcome text,
      status_code integer,
      request_id text,
      response bytea,
      error jsonb,
      usage jsonb,
      primary key (batch_id, position),
      unique (batch_id, custom_id)
    );
    create index batch_items_open on batch_items (batch_id, position) where outcome is null;
  `,
};
