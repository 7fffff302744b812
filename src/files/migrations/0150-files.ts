import type { Migration } from '../../storage/migrate.ts';

export const files: Migration = {
  name: '0150-files',
  sql: `
    create table files (
      id uuid primary key,
      organization_id text not null,
      workspace_id uuid not null references workspaces (id),
      filename text not null,
      mime_type text not null,
      bytes bigint not null,
      blob_id uuid not null references blobs (id),
      -- What an OpenAI client said the file is for.
      purpose text not null,
      downloadable boolean not null,
      created_at timestamptz not null
    );
    -- Ids rise with time.
    create index files_of_workspace on files (workspace_id, id);
  `,
};
