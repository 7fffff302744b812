import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { silentLog } from '../../src/base/log.ts';
import { spendMigrations } from '../../src/spend/index.ts';
import { enterBatch } from '../../src/spend/ledger.ts';
import { ledger } from '../../src/spend/migrations/0020-ledger.ts';
import { dropOldRows, tidyLedgerJob } from '../../src/spend/partitions/retention.ts';
import { encodeRow } from '../../src/spend/row.ts';
import { generationById } from '../../src/spend/store.ts';
import type { Database } from '../../src/storage/database.ts';
import { migrate } from '../../src/storage/migrate.ts';
import { TestClock } from '../../src/testing/clock/clock.ts';
import { connectOnce, emptyDatabase, freshDatabase } from '../../src/testing/database/database.ts';
import { sampleAccepted, sampleGeneration } from '../../src/testing/laws/spend-samples.ts';

const DAY_MS = 86_400_000;
const NEW_YEAR = Date.UTC(2027, 0, 1);

const entry = (id: string, createdAt: number) => ({
  id,
  row: encodeRow(sampleGeneration({ ...sampleAccepted(id), createdAt })),
  taken: [],
});

const enter = (database: Database, ...entries: ReturnType<typeof entry>[]) =>
  enterBatch(database, 'process', entries, silentLog);

async function monthsOf(database: Database): Promise<string[]> {
  const rows = await database.query<{ month: string }>(
    `select replace(substr(inhrelid::regclass::text, 13), '_', '-') as month from pg_inherits
     where inhparent = 'generations'::regclass order by 1`,
  );
  return rows.map(({ month }) => month);
}

async function sums(database: Database): Promise<{ rows: number; lifetime: string }> {
  const [found] = await database.query<{ rows: number; lifetime: string }>(
    `select (select count(*)::int from generations) as rows,
       (select sum(spent_nano)::text from spend_windows where id like 'account/%/lifetime/%') as lifetime`,
  );
  return found!;
}

const ledgerOf = async (t: TestContext) => (await freshDatabase(t, { migrations: spendMigrations })).database;

test('a batch over the end of a month enters each row once, into its month', async (t) => {
  const database = await ledgerOf(t);
  const both = [entry('old', NEW_YEAR - 1), entry('new', NEW_YEAR)];
  await enter(database, ...both);
  await enter(database, ...both);
  assert.deepEqual(await monthsOf(database), ['2026-12', '2027-01']);
  assert.equal((await sums(database)).rows, 2);
});

test('many processes that need a new month at once create it once, and no row is lost', async (t) => {
  const database = await ledgerOf(t);
  await Promise.all(Array.from({ length: 5 }, (_, at) => enter(database, entry(`row-${at}`, NEW_YEAR + at))));
  assert.deepEqual(await monthsOf(database), ['2027-01']);
  assert.equal((await sums(database)).rows, 5);
});

test('a month is dropped when its last row is older than the retention, and spend totals stay', async (t) => {
  const database = await ledgerOf(t);
  await enter(database, entry('december', NEW_YEAR - DAY_MS), entry('january', NEW_YEAR));
  const before = await sums(database);
  await dropOldRows(database, NEW_YEAR + 29 * DAY_MS, null, silentLog);
  await dropOldRows(database, NEW_YEAR + 30 * DAY_MS - 1, 30, silentLog);
  assert.equal((await sums(database)).rows, 2);
  await dropOldRows(database, NEW_YEAR + 30 * DAY_MS, 30, silentLog);
  assert.deepEqual(await sums(database), { rows: 1, lifetime: before.lifetime });
  assert.equal(await generationById(database, 'december'), undefined);
  assert.notEqual(await generationById(database, 'january'), undefined);
});

test('a row that arrives after its month was dropped is still entered', async (t) => {
  const database = await ledgerOf(t);
  await enter(database, entry('first', NEW_YEAR));
  await dropOldRows(database, NEW_YEAR + 100 * DAY_MS, 30, silentLog);
  assert.deepEqual(await monthsOf(database), []);
  await enter(database, entry('late', NEW_YEAR + 1));
  assert.notEqual(await generationById(database, 'late'), undefined);
});

test('old daily counters are deleted, except lifetime counters and those with leases', async (t) => {
  const database = await ledgerOf(t);
  await enter(database, entry('row', NEW_YEAR));
  await database.query(`update spend_windows set leased_nano = 1 where id like 'key/%/daily/%'`);
  await dropOldRows(database, NEW_YEAR + 200 * DAY_MS, null, silentLog);
  const left = await database.query<{ id: string }>('select id from spend_windows order by id');
  assert.deepEqual(
    left.map(({ id }) =>
      id
        .split('/')
        .filter((_, at) => at === 0 || at === 2)
        .join(' '),
    ),
    ['account lifetime', 'key daily', 'key lifetime', 'workspace lifetime'],
  );
});

test('the tidy job completes daily totals and drops what the retention of this moment does not keep', async (t) => {
  const database = await ledgerOf(t);
  const clock = new TestClock(NEW_YEAR + 40 * DAY_MS);
  let days: number | null = null;
  const { run } = tidyLedgerJob({ database, clock, log: silentLog, retentionDays: () => days });
  const tidy = () => run({ data: {}, attempt: 1, signal: new AbortController().signal });
  await enter(database, entry('december', NEW_YEAR - DAY_MS), entry('january', NEW_YEAR));
  await database.query('update generations set summed = false');
  await database.query('delete from generation_days');
  await tidy();
  const [totals] = await database.query<{ requests: string }>(
    'select sum(requests)::text as requests from generation_days',
  );
  assert.equal(totals?.requests, '2');
  assert.deepEqual(await monthsOf(database), ['2026-12', '2027-01']);
  days = 30;
  await tidy();
  assert.deepEqual(await monthsOf(database), ['2027-01']);
});

test('the migration to months keeps all rows unchanged, each in its month', async (t) => {
  const target = await emptyDatabase(t, [ledger]);
  const client = await connectOnce(t, target);
  const times = [NEW_YEAR - 40 * DAY_MS, NEW_YEAR - 1, NEW_YEAR, NEW_YEAR + 40 * DAY_MS];
  const rows = times.map((createdAt, at) => JSON.parse(entry(`row-${at}`, createdAt).row));
  await client.query(`insert into generations select * from jsonb_populate_recordset(null::generations, $1::jsonb)`, [
    JSON.stringify(rows),
  ]);
  const before = await client.query('select * from generations order by id');
  await migrate({ target, migrations: spendMigrations, log: silentLog });
  const after = await client.query('select * from generations order by id');
  // Later steps add columns.
  const known = before.fields.map(({ name }) => name);
  const kept = (row: Record<string, unknown>) => Object.fromEntries(known.map((name) => [name, row[name]]));
  assert.deepEqual(after.rows.map(kept), before.rows.map(kept));
  const months = await client.query(`select distinct tableoid::regclass::text as name from generations order by 1`);
  assert.deepEqual(
    months.rows.map(({ name }: { name: string }) => name),
    ['generations_2026_11', 'generations_2026_12', 'generations_2027_01', 'generations_2027_02'],
  );
});
