/** A table of sealed values, for what happens to those whatever they are. */
import type { SealedRows } from '../../src/sealing/index.ts';
import type { Migration } from '../../src/storage/migrate.ts';

export const thingsTable: Migration = {
  name: '9990-things',
  sql: 'create table things (id text primary key, sealed bytea not null)',
};

const OUTDATED = 'substring(sealed from 1 for 5) <> $1';

export const THINGS: SealedRows = {
  purpose: 'things',
  column: 'sealed',
  outdated: (tx, header, after, limit) =>
    tx.query(
      `select id, sealed from things where ${OUTDATED} and ($2::text is null or id > $2) order by id limit $3
        for update skip locked`,
      [header, after, limit],
    ),
  replace: async (tx, id, sealed) => {
    await tx.query('update things set sealed = $2 where id = $1', [id, sealed]);
  },
  countOutdated: async (db, header) => {
    const sql = `select count(*)::int as total from things where ${OUTDATED}`;
    return (await db.query<{ total: number }>(sql, [header]))[0]!.total;
  },
};
