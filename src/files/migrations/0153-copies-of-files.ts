import type { Migration } from '../../storage/migrate.ts';

/** The copies of a deleted file are found by an index instead of a search through all copies. */
export const copiesOfFiles: Migration = {
  name: '0153-copies-of-files',
  sql: `
    -- Null: the file is deleted.
    alter table file_copies alter column file_id drop not null;
    update file_copies set file_id = null where not exists (select 1 from files where files.id = file_copies.file_id);
    alter table file_copies add foreign key (file_id) references files (id) on delete set null;
    create index file_copies_of_none on file_copies (created_at) where file_id is null;
    create index file_copies_expiry on file_copies (expires_at);
  `,
};
