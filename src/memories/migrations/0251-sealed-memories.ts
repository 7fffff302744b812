import type { Migration } from '../../storage/migrate.ts';

export const sealedMemories: Migration = {
  name: '0251-sealed-memories',
  sql: `
    alter table memory_files
      add column id uuid not null default gen_random_uuid() unique,
      -- The text, encrypted as sealing/ does. Texts from before are in content until they are written again.
      add column sealed bytea,
      alter column content drop not null,
      add check ((content is null) <> (sealed is null));
    create index memory_files_of_workspace on memory_files (workspace_id, updated_at);
  `,
};
