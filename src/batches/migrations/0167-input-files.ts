import type { Migration } from '../../storage/migrate.ts';

export const inputFiles: Migration = {
  name: '0167-input-files',
  sql: `
    alter table batches
      add column in_progress_at timestamptz,
      add column finalizing_at timestamptz;
    -- Of a batch whose requests come from a file, and whose results go to files.
    create table batch_files (
      batch_id uuid primary key references batches (id) on delete cascade,
      -- Files may be deleted before the batch.
      input_file_id uuid not null,
      output_file_id uuid,
      error_file_id uuid,
      -- How long the files with the results are kept.
      output_seconds integer not null,
      -- When the results were in their files; null: not yet.
      written_at timestamptz,
      -- Why the input file was refused.
      errors jsonb,
      metadata jsonb
    );
    create index batch_files_unwritten on batch_files (batch_id) where written_at is null;
  `,
};
