import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Columns, excludedList, insertRow, pick, selectList, updateRow } from '../../src/storage/columns.ts';
import { freshDatabase } from '../../src/testing/database/database.ts';

interface Shelf {
  id: string;
  shelfName: string | null;
  bookNumbers: readonly number[] | null;
  labels: readonly string[] | null;
  notes: unknown;
}

const COLUMNS: Columns<Shelf> = {
  id: 'id',
  shelfName: 'name',
  bookNumbers: { name: 'books', type: 'bigint[]', read: 'text[]' },
  labels: 'labels',
  notes: { name: 'notes', type: 'jsonb' },
};

const CREATE =
  'create table shelves (id text primary key, name text, books bigint[], labels text[], notes jsonb, version int not null default 1)';

test('a row is read back as it was inserted and updated, whatever the order of its members', async (t) => {
  const { database } = await freshDatabase(t);
  await database.query(CREATE);
  const read = async (id: string) => {
    const sql = `select ${selectList(COLUMNS, 's')}, s.version from shelves s where s.id = $1`;
    return (await database.query<object>(sql, [id]))[0];
  };
  const first = {
    notes: [{ a: "it's" }, null],
    id: 'one',
    labels: ['x,y', '"z"'],
    bookNumbers: [1, 2],
    shelfName: 'top',
  };
  const other = { id: 'two', shelfName: null, bookNumbers: null, labels: null, notes: null };
  await insertRow(database, 'shelves', COLUMNS, first);
  await insertRow(database, 'shelves', COLUMNS, other);
  assert.deepEqual(await read('one'), { ...first, bookNumbers: ['1', '2'], version: 1 });
  assert.deepEqual(await read('two'), { ...other, version: 1 });

  const change = pick(COLUMNS, ['labels', 'shelfName', 'notes']);
  const changed = { shelfName: 'low', labels: [], notes: {} };
  await updateRow(database, 'shelves', change, changed, { id: 'one', version: 1 }, 'version = version + 1');
  await updateRow(database, 'shelves', change, { ...changed, shelfName: 'never' }, { id: 'one', version: 1 });
  assert.deepEqual(await read('one'), { ...first, ...changed, bookNumbers: ['1', '2'], version: 2 });
  assert.deepEqual(await read('two'), { ...other, version: 1 });
});

test('an insert reports whether the row existed, and can replace its columns', async (t) => {
  const { database } = await freshDatabase(t);
  await database.query(CREATE);
  const row = { id: 'one', shelfName: 'top', bookNumbers: null, labels: null, notes: 1 };
  const insert = (rest: string, change = {}) =>
    insertRow<{ name: string }>(database, 'shelves', COLUMNS, { ...row, ...change }, `${rest} returning name`);
  assert.deepEqual(await insert('on conflict do nothing'), [{ name: 'top' }]);
  assert.deepEqual(await insert('on conflict do nothing'), []);
  const replace = `on conflict (id) do update set ${excludedList(COLUMNS)}`;
  assert.deepEqual(await insert(replace, { shelfName: 'new' }), [{ name: 'new' }]);
});
