/** A table of encrypted values for the tests of rotation. */
import { sealedColumn } from '../../src/sealing/index.ts';
import type { Migration } from '../../src/storage/migrate.ts';

export const thingsTable: Migration = {
  name: '9990-things',
  sql: 'create table things (id text primary key, sealed bytea not null)',
};

export const THINGS = sealedColumn({ purpose: 'things', table: 'things', column: 'sealed' });
