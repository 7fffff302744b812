import type { Migration } from '../../storage/migrate.ts';

export const videos: Migration = {
  name: '0270-videos',
  sql: `
    -- Jobs of POST /videos. The prompt is not kept.
    create table videos (
      -- vid_...
      id text primary key,
      organization_id text not null,
      workspace_id uuid not null,
      generation_id text not null,
      model text not null,
      -- in_progress, completed or failed
      status text not null,
      error text,
      -- USD; null: unknown
      cost double precision,
      is_byok boolean not null default false,
      -- The content, until the job expires.
      blob_id uuid,
      media_type text,
      created_at timestamptz not null,
      expires_at timestamptz not null,
      -- When it passes while the job is in progress, the process that runs it is dead.
      claimed_until timestamptz not null,
      foreign key (organization_id, workspace_id) references workspaces (organization_id, id)
    );
    create index videos_of_workspace on videos (workspace_id);
    create index videos_kept on videos (expires_at);
    create index videos_running on videos (claimed_until) where status = 'in_progress';
  `,
};
