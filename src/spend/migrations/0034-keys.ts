import type { Migration } from '../../storage/migrate.ts';

/** The requests of a key, newest first. Without an index, the list of a key with few requests reads the rows of all others. */
export const keys: Migration = {
  name: '0034-keys',
  sql: 'create index generations_of_key on generations (key_id, id);',
};
