import type { Migration } from '../../storage/migrate.ts';

export const blobs: Migration = {
  name: '0130-blobs',
  sql: `
    create table blobs (
      id uuid primary key,
      -- writing: bytes may be missing. kept: something refers to it. dropped: its bytes are to be removed.
      state text not null check (state in ('writing', 'kept', 'dropped')),
      bytes bigint,
      sha256 bytea,
      created_at timestamptz not null
    );
    create index blobs_unkept on blobs (created_at) where state <> 'kept';
  `,
};
