import type { Migration } from '../../storage/migrate.ts';

export const responses: Migration = {
  name: '0240-responses',
  sql: `
    -- Stored responses. Contents are encrypted with the data key of the row, which is encrypted as sealing/ does.
    create table responses (
      -- resp_...
      id text primary key,
      organization_id text not null,
      workspace_id uuid not null,
      key_hash text not null,
      status text not null,
      -- No reference: the response before may be deleted.
      previous_id text,
      conversation_id text,
      background boolean not null,
      streamed boolean not null,
      created_at timestamptz not null,
      expires_at timestamptz not null,
      -- The process that runs it. When claimed_until passes without an end, the process is dead.
      claim uuid,
      claimed_until timestamptz,
      data_key bytea not null,
      -- Of input and answer, encrypted.
      bytes integer not null,
      -- JSON of a list: the items that the request added to the context.
      input bytea not null,
      -- JSON: the response as the client gets it.
      answer bytea not null,
      -- JSON: what the background needs in order to run it; null once it has begun.
      request bytea,
      foreign key (organization_id, workspace_id) references workspaces (organization_id, id)
    );
    create index responses_of_workspace on responses (workspace_id);
    create index responses_kept on responses (expires_at);
    create index responses_running on responses (claimed_until) where status = 'in_progress';
  `,
};
