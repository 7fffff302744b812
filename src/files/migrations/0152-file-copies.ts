import type { Migration } from '../../storage/migrate.ts';

/** Copies of files at vendors, and uploads that make one. They outlive their file until they are removed at the vendor. */
export const fileCopies: Migration = {
  name: '0152-file-copies',
  sql: `
    create table file_copies (
      id uuid primary key,
      file_id uuid not null,
      provider_id text not null,
      -- The BYOK credential whose account has the copy; null: one of the gateway's own.
      byok_id uuid,
      -- Hash of the address and the credential.
      account bytea not null,
      -- Null while it is uploaded.
      vendor_id text,
      -- End of the upload's claim, or when the vendor removes the copy; null: never.
      expires_at timestamptz,
      removal_attempts integer not null default 0,
      remove_after timestamptz,
      created_at timestamptz not null,
      unique (file_id, account)
    );
  `,
};
