import type { Migration } from '../../storage/migrate.ts';

export const conversations: Migration = {
  name: '0242-conversations',
  sql: `
    -- Stored conversations. Contents are encrypted with the data key of the row, which is encrypted as sealing/ does.
    create table conversations (
      -- conv_...
      id text primary key,
      organization_id text not null,
      workspace_id uuid not null,
      created_at timestamptz not null,
      -- The last time that items were added.
      used_at timestamptz not null,
      data_key bytea not null,
      -- JSON, encrypted.
      metadata bytea not null,
      foreign key (organization_id, workspace_id) references workspaces (organization_id, id)
    );
    create index conversations_of_workspace on conversations (workspace_id);
    create index conversations_used on conversations (used_at);
    create table conversation_items (
      conversation_id text not null references conversations on delete cascade,
      -- Rises with time.
      position bigint generated always as identity,
      id text not null,
      -- JSON as it is sent to models, encrypted.
      sealed bytea not null,
      primary key (conversation_id, position),
      unique (conversation_id, id)
    );
  `,
};
