import type { Migration } from '../../storage/migrate.ts';

export const vectorStores: Migration = {
  name: '0280-vector-stores',
  sql: `
    -- Texts and vectors are encrypted with the data key of their store, which is encrypted as sealing/ does.
    create table vector_stores (
      id uuid primary key,
      organization_id text not null,
      workspace_id uuid not null,
      name text not null,
      metadata jsonb not null,
      expires_days int,
      -- Null: files are ranked by keywords only.
      embedding_model text,
      data_key bytea not null,
      created_at timestamptz not null,
      active_at timestamptz not null,
      foreign key (organization_id, workspace_id) references workspaces (organization_id, id)
    );
    create index vector_stores_of_workspace on vector_stores (workspace_id, id);
    create index vector_stores_expiring on vector_stores (active_at) where expires_days is not null;
    create table vector_store_batches (
      id uuid primary key,
      store_id uuid not null references vector_stores on delete cascade,
      created_at timestamptz not null,
      cancelled_at timestamptz
    );
    create index vector_store_batches_of_store on vector_store_batches (store_id);
    create table vector_store_files (
      id uuid primary key,
      store_id uuid not null references vector_stores on delete cascade,
      file_id uuid not null references files on delete cascade,
      batch_id uuid references vector_store_batches on delete set null,
      -- The key that added the file and pays for its vectors.
      key_hash text not null,
      status text not null check (status in ('in_progress', 'completed', 'failed', 'cancelled')),
      error_code text,
      error_message text,
      attributes jsonb not null,
      chunk_tokens int not null,
      overlap_tokens int not null,
      chunks int not null default 0,
      -- Of texts and vectors.
      bytes int not null default 0,
      -- Of all chunks, encrypted; null without an embedding model.
      vectors bytea,
      created_at timestamptz not null,
      unique (store_id, file_id)
    );
    create index vector_store_files_of_file on vector_store_files (file_id);
    create index vector_store_files_of_batch on vector_store_files (batch_id);
    create index vector_store_files_waiting on vector_store_files (created_at) where status = 'in_progress';
    create table vector_store_chunks (
      entry_id uuid not null references vector_store_files on delete cascade,
      position int not null,
      -- The text, encrypted.
      sealed bytea not null,
      -- Keyed hashes of the words, under a key of the store.
      terms tsvector not null,
      primary key (entry_id, position)
    );
    create index vector_store_chunks_terms on vector_store_chunks using gin (terms);
  `,
};
