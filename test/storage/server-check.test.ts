import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { type TestContext, test } from 'node:test';
import { systemClock as clock } from '../../src/base/clock.ts';
import { silentLog } from '../../src/base/log.ts';
import { type Target, withClient } from '../../src/storage/connection.ts';
import { openDatabase } from '../../src/storage/database.ts';
import { migrate } from '../../src/storage/migrate.ts';
import { reachServer } from '../../src/storage/server-check.ts';
import { connectOnce, emptyDatabase } from '../../src/testing/database/database.ts';

/** The same database with further options for its sessions, as in DATABASE_URL. */
function withOptions(target: Target, options: string): Target {
  const given = encodeURIComponent(options);
  if ('connectionString' in target) return { connectionString: `${target.connectionString}?options=${given}` };
  const host = encodeURIComponent(target.socketFolder);
  return { connectionString: `postgres://postgres@/${target.database}?host=${host}&options=${given}` };
}

async function inZone(t: TestContext, zone: string): Promise<Target> {
  return withOptions(await emptyDatabase(t), `-c TimeZone=${zone}`);
}

for (const zone of ['UTC', 'Etc/UTC', 'Etc/UCT', 'Zulu', 'Universal', 'GMT', 'Etc/GMT0', 'Greenwich', 'UTC0']) {
  test(`sessions in the time zone ${zone} are in UTC`, async (t) => {
    const target = await inZone(t, zone);
    const client = await connectOnce(t, target);
    const { rows } = await client.query('show timezone');
    assert.equal(rows[0].TimeZone, zone);
    await reachServer({ target, clock });
  });
}

const MIGRATIONS = [{ name: '0001-things', sql: 'create table things (id int primary key)' }];

for (const zone of [
  'Europe/Berlin',
  'Europe/London',
  'America/New_York',
  'Etc/GMT+1',
  'Antarctica/Troll',
  'Asia/Kolkata',
]) {
  test(`the time zone ${zone} is refused in words, and nothing is migrated`, async (t) => {
    const plain = await emptyDatabase(t);
    const target = withOptions(plain, `-c TimeZone=${zone}`);
    const words = new RegExp(`time zone ${zone.replace('+', '\\+')}: add "-c TimeZone=UTC"`);
    await assert.rejects(reachServer({ target, clock }), words);
    await assert.rejects(openDatabase({ target, clock, log: silentLog }), words);
    await assert.rejects(migrate({ target, migrations: MIGRATIONS, log: silentLog }), words);
    const client = await connectOnce(t, plain);
    const { rows } = await client.query(`select count(*)::int as tables from pg_tables where schemaname = 'public'`);
    assert.equal(rows[0].tables, 0);
  });
}

/** Defaults of the database that would change what the gateway reads and writes. */
const DEFAULTS = { TimeZone: 'Asia/Kolkata', DateStyle: 'German, DMY', standard_conforming_strings: 'off' };

for (const [setting, value] of Object.entries(DEFAULTS)) {
  test(`a database with another default of ${setting} is used with the right one`, async (t) => {
    const target = await emptyDatabase(t);
    const client = await connectOnce(t, target);
    const { rows } = await client.query('select current_database() as name');
    await client.query(`alter database ${client.escapeIdentifier(rows[0].name)} set ${setting} = '${value}'`);
    await reachServer({ target, clock });
    await withClient(target, async (inside) => {
      const { rows: read } = await inside.query(`select timestamptz '2026-03-04 05:06:07+00' as moment, '\\' as text`);
      assert.deepEqual(read, [{ moment: new Date('2026-03-04T05:06:07Z'), text: '\\' }]);
    });
  });
}

for (const option of ['DateStyle=German', 'DateStyle=SQL,DMY', 'standard_conforming_strings=off']) {
  test(`options of DATABASE_URL with ${option} are refused in words, and nothing is migrated`, async (t) => {
    const plain = await emptyDatabase(t);
    const target = withOptions(plain, `-c TimeZone=UTC -c ${option}`);
    const words = new RegExp(`add "-c ${option.split('=')[0]}=`);
    await assert.rejects(reachServer({ target, clock }), words);
    await assert.rejects(migrate({ target, migrations: MIGRATIONS, log: silentLog }), words);
    const client = await connectOnce(t, plain);
    const { rows } = await client.query(`select count(*)::int as tables from pg_tables where schemaname = 'public'`);
    assert.equal(rows[0].tables, 0);
  });
}

test('a role that may not create schemas is refused in words, and nothing is migrated', async (t) => {
  const target = await emptyDatabase(t);
  const client = await connectOnce(t, target);
  const name = (await client.query('select current_database() as name')).rows[0].name;
  const role = `limited_${process.pid}`;
  await client.query(`create role ${role}; alter database ${name} set role = ${role}`);
  try {
    const words = new RegExp(`grant create on database ${name} to ${role}`);
    await assert.rejects(reachServer({ target, clock }), words);
    await assert.rejects(migrate({ target, migrations: MIGRATIONS, log: silentLog }), words);
    const { rows } = await client.query(`select 1 from pg_tables where schemaname = 'public'`);
    assert.deepEqual(rows, []);
    await client.query(`grant create on database ${name} to ${role}`);
    await reachServer({ target, clock });
  } finally {
    await client.query(`alter database ${name} reset role; drop owned by ${role}; drop role ${role}`);
  }
});

test('a database in another encoding is refused in words, and nothing is migrated', async (t) => {
  const target = await emptyDatabase(t);
  const client = await connectOnce(t, target);
  const name = `latin_${process.pid}`;
  await client.query(`create database ${name} template template0 encoding 'LATIN1' locale 'C'`);
  const latin: Target =
    'connectionString' in target
      ? { connectionString: new URL(`/${name}`, target.connectionString).href }
      : { ...target, database: name };
  try {
    await assert.rejects(reachServer({ target: latin, clock }), /encoding is LATIN1: Gatehouse needs UTF8/);
    await assert.rejects(migrate({ target: latin, migrations: MIGRATIONS, log: silentLog }), /encoding is LATIN1/);
    const tables = await withClient(latin, (inside) =>
      inside.query(`select 1 from pg_tables where schemaname = 'public'`),
    );
    assert.equal(tables.rowCount, 0);
  } finally {
    await client.query(`drop database ${name} with (force)`);
  }
});

/** A pooler that answers every startup message with an error, as PgBouncer does for unknown parameters. */
async function refusingPooler(t: TestContext, message: string) {
  const fields = Buffer.from(`SFATAL\0C08P01\0M${message}\0\0`);
  const head = Buffer.from([0x45, 0, 0, 0, fields.length + 4]);
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    socket.on('error', () => {});
    socket.once('data', () => socket.end(Buffer.concat([head, fields])));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  return { target: { connectionString: `postgres://me@127.0.0.1:${port}/x` }, connections: () => connections };
}

for (const message of [
  'unsupported startup parameter: idle_in_transaction_session_timeout',
  'unsupported startup parameter in options: DateStyle',
]) {
  test(`a pooler that answers "${message}" is refused at once, with the setting that it needs`, async (t) => {
    const pooler = await refusingPooler(t, message);
    const words =
      /refuses the session setting \w+: add .*idle_in_transaction_session_timeout.* to ignore_startup_parameters/;
    await assert.rejects(reachServer({ target: pooler.target, clock }), words);
    assert.equal(pooler.connections(), 1);
  });
}
