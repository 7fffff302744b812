import type { Migration } from '../../storage/migrate.ts';

/** Files that Google's clients upload in several requests, and what has arrived of them. */
export const resumableUploads: Migration = {
  name: '0153-resumable-uploads',
  sql: `
    -- What a client calls the file where that is no filename; null: the filename.
    alter table files add column display_name text;
    create table file_uploads (
      id uuid primary key,
      -- Hash of the secret in the upload's URL.
      token_hash text not null unique,
      organization_id text not null,
      workspace_id uuid not null references workspaces (id),
      -- The key that started the upload, on whose behalf it ends.
      key_hash text not null,
      filename text not null,
      display_name text,
      announced_bytes bigint,
      received_bytes bigint not null,
      -- The file that it became; null: unfinished.
      file_id uuid,
      created_at timestamptz not null,
      expires_at timestamptz not null
    );
    create index file_uploads_of_workspace on file_uploads (workspace_id);
    create index file_uploads_expiring on file_uploads (expires_at);
    create table file_upload_chunks (
      upload_id uuid not null references file_uploads (id),
      -- Offset of its first byte in the file.
      start bigint not null,
      bytes bigint not null,
      blob_id uuid not null references blobs (id),
      primary key (upload_id, start)
    );
  `,
};
