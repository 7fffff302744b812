import type { Migration } from '../../storage/migrate.ts';

export const callbacks: Migration = {
  name: '0166-callbacks',
  sql: `
    create table batch_callbacks (
      batch_id uuid primary key references batches (id) on delete cascade,
      url text not null,
      status text not null,
      attempts integer not null,
      attempted_at timestamptz,
      last_error text,
      -- When a job was last sent for it.
      seen_at timestamptz not null
    );
    create index batch_callbacks_pending on batch_callbacks (seen_at) where status = 'pending';
    create table batch_callback_secrets (
      id uuid primary key,
      workspace_id uuid not null references workspaces (id),
      sealed bytea not null,
      created_at timestamptz not null,
      -- Null: the current one. A replaced one signs, too, until then.
      expires_at timestamptz
    );
    create unique index batch_callback_secrets_current on batch_callback_secrets (workspace_id) where expires_at is null;
  `,
};
