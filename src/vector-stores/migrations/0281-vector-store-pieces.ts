import type { Migration } from '../../storage/migrate.ts';

export const vectorStorePieces: Migration = {
  name: '0281-vector-store-pieces',
  sql: `
    -- Vectors that were made for a file that is being added, one row for each request, so that a killed process does not lose them.
    create table vector_store_pieces (
      entry_id uuid not null references vector_store_files on delete cascade,
      -- Position of the first chunk.
      first int not null,
      -- A digest of the texts and their vectors, encrypted.
      sealed bytea not null,
      primary key (entry_id, first)
    );
  `,
};
