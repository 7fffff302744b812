import type { Migration } from '../../storage/migrate.ts';

export const unsavedContainers: Migration = {
  name: '0231-unsaved-containers',
  sql: `
    -- When a use ended whose files could not be stored; null once a later use has stored its files.
    alter table containers add column unsaved_at timestamptz;
  `,
};
