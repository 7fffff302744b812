import type { Migration } from '../../storage/migrate.ts';

export const memories: Migration = {
  name: '0250-memories',
  sql: `
    create table memory_files (
      workspace_id uuid not null references workspaces (id),
      -- SHA-256 of what the folder belongs to: an end user or a session.
      owner bytea not null,
      is_session boolean not null,
      path text not null,
      content text not null,
      bytes int not null,
      updated_at timestamptz not null,
      primary key (workspace_id, owner, path)
    );
  `,
};
