import assert from 'node:assert/strict';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { systemClock as clock } from '../../src/base/clock.ts';
import { GatewayError } from '../../src/base/errors.ts';
import { silentLog as log } from '../../src/base/log.ts';
import { describeTarget } from '../../src/storage/connection.ts';
import { type Database, openDatabase, type Queryable } from '../../src/storage/database.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { emptyDatabase, freshDatabase } from '../../src/testing/database/database.ts';

const COUNTERS = [
  { name: '0001-counters', sql: 'create table counters (name text primary key, value bigint not null)' },
];

test('columns arrive in types that lose nothing', async (t) => {
  const { database } = await freshDatabase(t);
  const [row] = await database.query(
    `select 9223372036854775807::bigint as big, array[1, null, -9007199254740993]::bigint[] as bigs,
       0.1000000000000000055511::numeric as exact, timestamptz '2026-01-02 03:04:05.678+02' as moment,
       date '2026-01-02' as day, '{"a": [1]}'::jsonb as json, '\\x00ff'::bytea as bytes, null as nothing,
       '{}'::bigint[] as none, current_setting('TimeZone') as zone`,
  );
  assert.deepEqual(row, {
    big: 9223372036854775807n,
    bigs: [1n, null, -9007199254740993n],
    exact: '0.1000000000000000055511',
    moment: new Date('2026-01-02T01:04:05.678Z'),
    day: '2026-01-02',
    json: { a: [1] },
    bytes: Buffer.from([0, 255]),
    nothing: null,
    none: [],
    zone: 'UTC',
  });
});

test('statements of a transaction are seen by others once it commits', async (t) => {
  const { database } = await freshDatabase(t, { migrations: COUNTERS });
  await database.transaction(async (tx) => {
    await tx.query("insert into counters values ('a', $1)", [2n ** 60n]);
    assert.deepEqual(await tx.query('select value from counters'), [{ value: 2n ** 60n }]);
    assert.deepEqual(await database.query('select * from counters'), []);
  });
  assert.deepEqual(await database.query('select * from counters'), [{ name: 'a', value: 2n ** 60n }]);
});

test('several statements in one text answer with the rows of all, in order', async (t) => {
  const { database } = await freshDatabase(t, { migrations: COUNTERS });
  const text = "insert into counters values ('a', 1); select name from counters; select value from counters";
  assert.deepEqual(await database.query(text), [{ name: 'a' }, { value: 1n }]);
});

test('a transaction whose work throws leaves nothing behind, and its connection is used again', async (t) => {
  const { database } = await freshDatabase(t, { migrations: COUNTERS, poolSize: 1 });
  const thrown = new Error('no');
  const work = async (tx: Queryable) => {
    await tx.query("insert into counters values ('a', 1)");
    throw thrown;
  };
  await assert.rejects(database.transaction(work), thrown);
  assert.deepEqual(await database.query('select * from counters'), []);
});

test('a statement that failed and was ignored fails the transaction, not silently its commit', async (t) => {
  const { database } = await freshDatabase(t, { migrations: COUNTERS });
  const work = async (tx: Queryable) => {
    await tx.query("insert into counters values ('a', 1)");
    await tx.query('select 1 / 0').catch(() => {});
  };
  await assert.rejects(database.transaction(work), /was rolled back/);
  assert.deepEqual(await database.query('select * from counters'), []);
});

test('a statement after the end of its transaction reaches no connection', async (t) => {
  const { database } = await freshDatabase(t, { migrations: COUNTERS, poolSize: 1 });
  let leaked: Queryable | undefined;
  await database.transaction(async (tx) => {
    leaked = tx;
  });
  await assert.rejects(async () => leaked?.query("insert into counters values ('a', 1)"), /after the end/);
  assert.deepEqual(await database.query('select * from counters'), []);
});

test('errors of the server keep their SQLSTATE', async (t) => {
  const { database } = await freshDatabase(t, { migrations: COUNTERS });
  await database.query("insert into counters values ('a', 1)");
  await assert.rejects(database.query("insert into counters values ('a', 1)"), { code: '23505' });
  await assert.rejects(database.query('select * from nothing'), { code: '42P01' });
});

test('deadlocked transactions are both done in the end', async (t) => {
  const { database } = await freshDatabase(t, { migrations: COUNTERS });
  await database.query("insert into counters values ('a', 0), ('b', 0)");
  let met = 0;
  const add = (first: string, second: string) =>
    database.transaction(async (tx) => {
      await tx.query('update counters set value = value + 1 where name = $1', [first]);
      met++;
      await until(() => met >= 2, 'both hold their first row');
      await tx.query('update counters set value = value + 1 where name = $1', [second]);
    });
  await Promise.all([add('a', 'b'), add('b', 'a')]);
  assert.ok(met > 2, 'one was retried');
  assert.deepEqual(await database.query('select value from counters'), [{ value: 2n }, { value: 2n }]);
});

test('transactions that cannot be serialized are retried until each has counted', async (t) => {
  const { database } = await freshDatabase(t, { migrations: COUNTERS });
  await database.query("insert into counters values ('a', 0)");
  const increment = () =>
    database.transaction(async (tx) => {
      await tx.query('set transaction isolation level serializable');
      const [row] = await tx.query<{ value: bigint }>("select value from counters where name = 'a'");
      await tx.query("update counters set value = $1 where name = 'a'", [(row?.value ?? 0n) + 1n]);
    });
  await Promise.all([increment(), increment(), increment()]);
  assert.deepEqual(await database.query('select value from counters'), [{ value: 3n }]);
});

test('more statements than connections all get their turn', async (t) => {
  const { database } = await freshDatabase(t, { poolSize: 2 });
  const numbers = Array.from({ length: 50 }, (_, number) => number);
  const rows = await Promise.all(
    numbers.map((number) => database.query<{ n: number }>('select $1::int as n', [number])),
  );
  assert.deepEqual(
    rows.map(([row]) => row?.n),
    numbers,
  );
});

test('a connection that is cut between two statements is not noticed by the caller', async (t) => {
  const { database } = await freshDatabase(t, { poolSize: 1 });
  const other = (await freshDatabase(t)).database;
  const [before] = await database.query<{ pid: number }>('select pg_backend_pid() as pid');
  await other.query('select pg_terminate_backend($1, 5000)', [before?.pid]);
  const [after] = await database.query<{ pid: number }>('select pg_backend_pid() as pid');
  assert.notEqual(after?.pid, before?.pid);
});

test('a statement that comes while the server is away for a moment waits for it', async (t) => {
  const gate = await openGate(t);
  const database = await openDatabase({ target: { connectionString: gate.url }, clock, log });
  t.after(() => database.close());
  await database.query('select 1');
  gate.close();
  await until(() => !database.up, 'the loss is noticed');
  const waiting = database.query('select 1 as one');
  gate.open();
  assert.deepEqual(await waiting, [{ one: 1 }]);
});

test('while the server is away statements are refused as retryable, at once after a grace, and work when it is back', async (t) => {
  const gate = await openGate(t);
  const database = await openDatabase({ target: { connectionString: gate.url }, clock, log });
  t.after(() => database.close());
  await database.query('select 1');
  gate.close();
  await until(() => !database.up, 'the loss is noticed');
  await assertUnavailable(database);
  const asked = clock.monotonic();
  await assertUnavailable(database);
  await assertUnavailable(database);
  assert.ok(clock.monotonic() - asked < 500, 'nobody waits a second time');
  gate.open();
  await until(() => database.up, 'it is back');
  assert.deepEqual(await database.query('select 1 as one'), [{ one: 1 }]);
});

test('a closed database refuses statements and closes once', async (t) => {
  const { database } = await freshDatabase(t);
  await database.query('select 1');
  await Promise.all([database.close(), database.close()]);
  assert.equal(database.up, false);
  await assertUnavailable(database);
});

test('what cannot be used is refused at the start, by a message without the password', async (t) => {
  const gate = await openGate(t);
  const wrong = gate.url.replace(/\/[^/]*$/, '/no_such_database').replace('postgres@', 'postgres:hidden@');
  await assert.rejects(openDatabase({ target: { connectionString: wrong }, clock, log }), (error: Error) => {
    assert.match(error.message, /no_such_database.*cannot be used.*does not exist/);
    assert.doesNotMatch(error.message, /hidden/);
    return true;
  });
  gate.close();
  const nobody = openDatabase({ target: { connectionString: gate.url }, clock, log, startTimeoutMs: 200 });
  await assert.rejects(nobody, /cannot be used: connect ECONNREFUSED/);
  assert.equal(describeTarget({ connectionString: 'postgres://u:secret@db.example/x' }), 'PostgreSQL at db.example/x');
});

async function assertUnavailable(database: Database): Promise<void> {
  await assert.rejects(database.query('select 1'), (error: unknown) => {
    assert.ok(error instanceof GatewayError);
    assert.equal(error.status, 503);
    assert.deepEqual(error.details.metadata, { retryable: true });
    return true;
  });
}

interface Gate {
  /** DATABASE_URL of the test server, over TCP and through the gate. */
  url: string;
  /** Cuts all connections and lets no new ones in. */
  close(): void;
  open(): void;
}

async function openGate(t: TestContext): Promise<Gate> {
  const target = await emptyDatabase(t);
  const inside = 'socketFolder' in target;
  const database = inside ? target.database : new URL(target.connectionString).pathname.slice(1);
  const sockets = new Set<Socket>();
  const server: Server = createServer((near) => {
    const far = inside
      ? connect(join(target.socketFolder, '.s.PGSQL.5432'))
      : connect(Number(new URL(target.connectionString).port), new URL(target.connectionString).hostname);
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on('error', () => {}).on('close', () => sockets.delete(socket));
    }
    near.pipe(far).pipe(near);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0;
  const close = () => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  t.after(close);
  return {
    url: `postgres://postgres@127.0.0.1:${port}/${database}`,
    close,
    open: () => void server.listen(port, '127.0.0.1'),
  };
}
