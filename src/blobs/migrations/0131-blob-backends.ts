import type { Migration } from '../../storage/migrate.ts';

/** Blobs stay where they are when another backend is configured. */
export const blobBackends: Migration = {
  name: '0131-blob-backends',
  sql: `alter table blobs add column backend text not null default 'disk' check (backend in ('disk', 's3'))`,
};
