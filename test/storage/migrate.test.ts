import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { systemClock as clock } from '../../src/base/clock.ts';
import { silentLog as log } from '../../src/base/log.ts';
import type { Target } from '../../src/storage/connection.ts';
import { openDatabase } from '../../src/storage/database.ts';
import { type Migration, migrate, migrationProblems } from '../../src/storage/migrate.ts';
import { emptyDatabase } from '../../src/testing/database/database.ts';

const FIRST: Migration = { name: '0001-things', sql: 'create table things (name text); insert into things values (1)' };
const SECOND: Migration = { name: '0010-sizes', sql: 'alter table things add column size int' };
const BROKEN: Migration = { name: '0011-broken', sql: 'create table half (n int); select 1 / 0' };

test('migrations run once each, in the order of their numbers', async (t) => {
  const target = await emptyDatabase(t);
  assert.deepEqual(await migrate({ target, migrations: [SECOND, FIRST], log }), ['0001-things', '0010-sizes']);
  assert.deepEqual(await migrate({ target, migrations: [FIRST, SECOND], log }), []);
  assert.deepEqual(await rows(t, target, 'select name, size from things'), [{ name: '1', size: null }]);
});

test('of processes that start at once each migration is done by one', async (t) => {
  const target = await emptyDatabase(t);
  const all = await Promise.all([1, 2, 3, 4].map(() => migrate({ target, migrations: [FIRST, SECOND], log })));
  assert.deepEqual(all.flat().sort(), ['0001-things', '0010-sizes']);
  assert.deepEqual(await rows(t, target, 'select count(*) as count from things'), [{ count: 1n }]);
});

test('a migration that fails is named, leaves nothing, and keeps what ran before it', async (t) => {
  const target = await emptyDatabase(t);
  const failing = migrate({ target, migrations: [FIRST, SECOND, BROKEN], log });
  await assert.rejects(failing, /migration 0011-broken failed, nothing of it was kept: division by zero/);
  assert.deepEqual(await rows(t, target, "select to_regclass('half') as half"), [{ half: null }]);
  assert.deepEqual(await migrate({ target, migrations: [FIRST, SECOND], log }), []);
});

test('a database that a newer version has migrated is refused and left alone', async (t) => {
  const target = await emptyDatabase(t);
  await migrate({ target, migrations: [FIRST, SECOND], log });
  await assert.rejects(migrate({ target, migrations: [FIRST], log }), /newer than this version.*0010-sizes/);
});

test('a migration that was changed after it ran is refused, a reformatted one is not', async (t) => {
  const target = await emptyDatabase(t);
  await migrate({ target, migrations: [FIRST], log });
  const laidOut = { ...FIRST, sql: `\n  ${FIRST.sql.replace('; ', ';\n  ')}\n` };
  assert.deepEqual(await migrate({ target, migrations: [laidOut], log }), []);
  const changed = { ...FIRST, sql: 'create table things (name varchar)' };
  await assert.rejects(migrate({ target, migrations: [changed], log }), /0001-things has run .* in another form/);
});

test('a set of migrations with a clash, a gap in a block or an odd name is refused', async (t) => {
  assert.deepEqual(migrationProblems(['0001-a', '0002-b', '0010-c', '0020-d', '0021-e']), []);
  assert.deepEqual(migrationProblems(['0010-a', '0010-b']), ['migrations 0010-a and 0010-b have the same number']);
  assert.deepEqual(migrationProblems(['0010-a', '0012-b']), ['migration 0012-b comes after a gap']);
  assert.equal(migrationProblems(['1-a', '0001_a', '0001-A', '0002-']).length, 4);
  const target = await emptyDatabase(t);
  const twice = [FIRST, { ...FIRST, name: '0001-others' }];
  await assert.rejects(migrate({ target, migrations: twice, log }), /same number/);
});

async function rows(t: TestContext, target: Target, text: string): Promise<unknown[]> {
  const database = await openDatabase({ target, clock, log });
  t.after(() => database.close());
  return database.query(text);
}
