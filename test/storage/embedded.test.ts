import assert from 'node:assert/strict';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import path, { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { systemClock as clock } from '../../src/base/clock.ts';
import type { GatewayError } from '../../src/base/errors.ts';
import { silentLog as log } from '../../src/base/log.ts';
import { openDatabase } from '../../src/storage/database.ts';
import { processesIn } from '../../src/storage/embedded/processes.ts';
import { type EmbeddedServer, socketFolderOf, startEmbedded } from '../../src/storage/embedded.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { dataFolder, emptyFolder } from '../../src/testing/database/database.ts';
import {
  descendantsOf,
  isAlive,
  type StartedProcess,
  sessionOf,
  startProcess,
} from '../../src/testing/process/process.ts';

const PROGRAM = path.join(import.meta.dirname, 'storage-process.ts');

const needsProc = process.platform === 'linux' ? false : 'needs /proc';
const needsRoot = process.geteuid?.() === 0 ? false : 'needs root';
const DEADLINE_MS = 60_000;
/** Commits have to survive the death of processes, but no power loss. */
const settings = { fsync: 'off' };

test('a first start makes everything, also where only its user can enter; a second finds what the first has written', async (t) => {
  const parent = emptyFolder(t);
  chmodSync(parent, 0o700);
  const folder = join(parent, 'not', 'there', 'yet');
  await serve(t, folder, async (database) => {
    await database.query('create table kept (word text)');
    await database.query("insert into kept values ('ünïcode')");
  });
  await serve(t, folder, async (database) => {
    assert.deepEqual(await database.query('select word from kept'), [{ word: 'ünïcode' }]);
    assert.deepEqual(await database.query('show server_encoding'), [{ server_encoding: 'UTF8' }]);
    assert.deepEqual(await database.query('show listen_addresses'), [{ listen_addresses: '' }]);
  });
  assert.equal(statSync(folder).mode & 0o777, 0o700);
  assert.equal(statSync(socketFolderOf(folder)).mode & 0o777, 0o700);
});

test('a process that is killed takes its server down with it, cleanly, and no acknowledged row is lost', {
  skip: needsProc,
}, async (t) => {
  const folder = await dataFolder(t);
  const writer = await startWriter(t, folder);
  writer.child.kill('SIGKILL');
  await until(() => !isAlive(serverOf(writer)), 'the server has ended', DEADLINE_MS);
  assert.deepEqual(processesIn(socketFolderOf(folder)), []);
  assert.ok(!existsSync(join(socketFolderOf(folder), 'postmaster.pid')), 'it was shut down, not killed');
  await assertAllThere(t, folder, writer);
});

test('a start right after a kill waits for the old server to end', { skip: needsProc }, async (t) => {
  const folder = await dataFolder(t);
  const writer = await startWriter(t, folder);
  writer.child.kill('SIGKILL');
  await assertAllThere(t, folder, writer);
});

test('when process, guard, server and its children are killed at once, the next start recovers', {
  skip: needsProc,
}, async (t) => {
  const folder = await dataFolder(t);
  const writer = await startWriter(t, folder);
  const server = serverOf(writer);
  kill(writer.pid, ...sessionOf(server), server, ...descendantsOf(server));
  await assertAllThere(t, folder, writer);
});

test('when process and server are killed and its children live on, the next start recovers', {
  skip: needsProc,
}, async (t) => {
  const folder = await dataFolder(t);
  const writer = await startWriter(t, folder);
  kill(writer.pid, ...sessionOf(serverOf(writer)), serverOf(writer));
  await assertAllThere(t, folder, writer);
});

test('a server that has lost both its process and its guard is replaced by the next start', {
  skip: needsProc,
}, async (t) => {
  const folder = await dataFolder(t);
  const writer = await startWriter(t, folder);
  const orphan = serverOf(writer);
  const guards = sessionOf(orphan);
  assert.equal(guards.length, 1);
  // At the same moment, or the process would set up another guard.
  process.kill(writer.pid, 'SIGSTOP');
  kill(...guards, writer.pid);
  await until(() => !isAlive(writer.pid), 'the process is dead');
  assert.ok(isAlive(orphan));
  const next = await assertAllThere(t, folder, writer);
  assert.notEqual(next, orphan);
});

test('a guard that is killed is replaced, and the new one does the same', { skip: needsProc }, async (t) => {
  const folder = await dataFolder(t);
  const writer = await startWriter(t, folder);
  const server = serverOf(writer);
  kill(...sessionOf(server));
  const children = () =>
    descendantsOf(writer.pid).filter((pid) => pid !== server && !descendantsOf(server).includes(pid));
  await until(() => children().length === 1, 'there is another guard', DEADLINE_MS);
  writer.child.kill('SIGKILL');
  await until(() => !isAlive(serverOf(writer)), 'the server has ended', DEADLINE_MS);
  assert.deepEqual(processesIn(socketFolderOf(folder)), []);
});

test('a server that is killed is started again while the process lives, with all that was committed', {
  skip: needsProc,
}, async (t) => {
  const folder = await dataFolder(t);
  await serve(t, folder, async (database, server) => {
    await database.query('create table kept (number int)');
    await database.query('insert into kept values (1)');
    const killed = server.pid;
    kill(killed);
    await until(() => server.pid !== killed, 'there is another', DEADLINE_MS);
    await until(() => database.up, 'it is reached', DEADLINE_MS);
    assert.deepEqual(await database.query('select number from kept'), [{ number: 1 }]);
  });
});

test('a backend that is killed costs the statements in flight and nothing else', { skip: needsProc }, async (t) => {
  const folder = await dataFolder(t);
  await serve(t, folder, async (database, server) => {
    const before = server.pid;
    const sleeping = database.query('select pg_sleep(60)');
    const refused = assert.rejects(sleeping, (error: GatewayError) => {
      assert.equal(error.status, 503);
      assert.deepEqual(error.details.metadata, { retryable: true });
      return true;
    });
    // A statement that has not begun yet would be repeated on another connection, and rightly.
    let backend: { pid: number } | undefined;
    for (let tries = 0; backend === undefined && tries < 10_000; tries++) {
      [backend] = await database.query<{ pid: number }>(
        "select pid from pg_stat_activity where query = 'select pg_sleep(60)' and state = 'active'",
      );
    }
    assert.ok(backend && descendantsOf(before).includes(backend.pid), 'the backend runs');
    kill(backend.pid);
    await refused;
    await until(() => database.up, 'it is reached', DEADLINE_MS);
    assert.deepEqual(await database.query('select 1 as one'), [{ one: 1 }]);
    assert.equal(server.pid, before);
  });
});

test('a process that is killed while its server recovers from a crash leaves no server behind', {
  skip: needsProc,
}, async (t) => {
  const folder = await dataFolder(t);
  const writer = await startWriter(t, folder);
  const server = serverOf(writer);
  kill(descendantsOf(server).at(-1) ?? 0);
  writer.child.kill('SIGKILL');
  await assertAllThere(t, folder, writer);
  await until(() => !isAlive(server), 'the server has ended');
});

test('an initdb that was killed half-way leaves nothing in the way of the next start', {
  skip: needsProc,
}, async (t) => {
  const folder = emptyFolder(t);
  const starter = startProcess(t, PROGRAM, [folder, 'serve', JSON.stringify(settings)]);
  const unfinished = () => readdirSync(folder).find((name) => name.startsWith('postgres.new-'));
  await until(() => existsSync(join(folder, unfinished() ?? '', 'base', '1')), 'initdb is at work', DEADLINE_MS);
  kill(starter.pid, ...descendantsOf(starter.pid));
  assert.ok(unfinished());
  assert.ok(!existsSync(socketFolderOf(folder)));
  await serve(t, folder, async (database) => {
    assert.deepEqual(await database.query('select 1 as one'), [{ one: 1 }]);
  });
  assert.equal(unfinished(), undefined);
});

test('of two concurrent starts in an empty folder one serves, and the other names it', async (t) => {
  const folder = emptyFolder(t);
  const both = await Promise.allSettled([
    startEmbedded({ dataFolder: folder, clock, log, settings }),
    startEmbedded({ dataFolder: folder, clock, log, settings }),
  ]);
  const servers = both.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  t.after(() => Promise.all(servers.map((server) => server.stop())));
  assert.equal(servers.length, 1);
  const refusal = both.find((one) => one.status === 'rejected');
  assert.match(String(refusal?.reason), /another Gatehouse process serves/);
});

test('a path of any length is served', async (t) => {
  const folder = await dataFolder(t, join('a'.repeat(100), 'b'.repeat(100), 'data'));
  await serve(t, folder, async (database) => {
    assert.deepEqual(await database.query('select 1 as one'), [{ one: 1 }]);
  });
});

test('root serves a folder that only root can enter, and changes no mode on the way', {
  skip: needsRoot,
}, async (t) => {
  const folder = await dataFolder(t, join('only-root', 'inner', 'data'));
  const parents = [dirname(dirname(folder)), dirname(folder), folder];
  for (const parent of parents) chmodSync(parent, 0o700);
  const before = parents.map((parent) => statSync(parent)).map(({ mode, uid, gid }) => ({ mode, uid, gid }));
  await serve(t, folder, async (database, server) => {
    assert.deepEqual(await database.query('select 1 as one'), [{ one: 1 }]);
    assert.notEqual(statSync(`/proc/${server.pid}`).uid, 0);
  });
  const after = parents.map((parent) => statSync(parent)).map(({ mode, uid, gid }) => ({ mode, uid, gid }));
  assert.deepEqual(after, before);
});

test('an ordinary user serves a folder of its own', { skip: needsRoot }, async (t) => {
  const folder = emptyFolder(t);
  chownSync(folder, 65534, 65534);
  const starter = startProcess(t, PROGRAM, [folder, 'serve', JSON.stringify(settings)], {
    uid: 65534,
    gid: 65534,
  });
  await until(() => starter.printed.length > 0 || starter.ended, 'it serves or fails', DEADLINE_MS);
  assert.ok(serverOf(starter) > 0, starter.errors());
});

test('a user id without an entry in /etc/passwd gets a message that says what to do', {
  skip: needsRoot,
}, async (t) => {
  const folder = emptyFolder(t);
  chownSync(folder, 54321, 54321);
  const starter = startProcess(t, PROGRAM, [folder, 'serve', JSON.stringify(settings)], {
    uid: 54321,
    gid: 54321,
  });
  await until(() => starter.ended, 'it gives up', DEADLINE_MS);
  assert.match(JSON.stringify(starter.printed), /54321 has no entry in \/etc\/passwd.*set DATABASE_URL/);
});

test('a lock file that names a live process of another kind is not believed', { skip: needsProc }, async (t) => {
  const folder = await dataFolder(t);
  const lock = `${process.pid}\n${socketFolderOf(folder)}\n1\n5432\n.\n\n`;
  writeFileSync(join(socketFolderOf(folder), 'postmaster.pid'), lock);
  writeFileSync(join(socketFolderOf(folder), '.s.PGSQL.5432.lock'), lock);
  await serve(t, folder, async (database) => {
    assert.deepEqual(await database.query('select 1 as one'), [{ one: 1 }]);
  });
});

test('a cluster of another major version is refused by name', async (t) => {
  const folder = await dataFolder(t);
  writeFileSync(join(socketFolderOf(folder), 'PG_VERSION'), '17\n');
  await assert.rejects(startEmbedded({ dataFolder: folder, clock, log, settings }), /was written by PostgreSQL 17/);
});

test('a cluster that a copy or a volume has given other modes is served', async (t) => {
  const folder = await dataFolder(t);
  chmodSync(socketFolderOf(folder), 0o770);
  await serve(t, folder, async () => {});
});

test('Ctrl-C on the terminal leaves the server to the process, which drains and stops it', {
  skip: needsProc,
}, async (t) => {
  const folder = await dataFolder(t);
  const starter = startProcess(t, PROGRAM, [folder, 'serve', JSON.stringify(settings)], {
    detached: true,
  });
  await until(() => starter.printed.length > 0, 'it serves', DEADLINE_MS);
  // As the terminal does it: to the whole process group.
  process.kill(-starter.pid, 'SIGINT');
  await until(() => starter.ended, 'it stops', DEADLINE_MS);
  assert.deepEqual(starter.printed.slice(1), [{ drained: true }]);
  assert.equal(starter.child.exitCode, 0);
  assert.deepEqual(processesIn(socketFolderOf(folder)), []);
});

test('statements and their values never reach the log file', async (t) => {
  const folder = await dataFolder(t);
  await serve(t, folder, async (database) => {
    await database.query('create table canary (word text primary key)');
    await database.query('insert into canary values ($1)', ['canary-value']);
    await assert.rejects(database.query('insert into canary values ($1)', ['canary-value']), { code: '23505' });
    await assert.rejects(database.query("select 'canary-value' from no_such_table"), { code: '42P01' });
  });
  const written = readFileSync(join(folder, 'postgres.log'), 'utf8');
  assert.match(written, /ready to accept connections/);
  assert.doesNotMatch(written, /canary/);
  assert.equal(statSync(join(folder, 'postgres.log')).mode & 0o777, 0o600);
});

/** Serves the folder in this process for the time of `work`. */
async function serve(
  t: TestContext,
  folder: string,
  work: (database: Awaited<ReturnType<typeof openDatabase>>, server: EmbeddedServer) => Promise<void>,
): Promise<void> {
  mkdirSync(dirname(folder), { recursive: true });
  const server = await startEmbedded({ dataFolder: folder, clock, log, settings });
  t.after(() => server.stop());
  const database = await openDatabase({ target: server, clock, log });
  try {
    await work(database, server);
  } finally {
    await database.close();
    await server.stop();
  }
}

/** A process that writes row after row and has had some acknowledged. */
async function startWriter(t: TestContext, folder: string): Promise<StartedProcess> {
  const writer = startProcess(t, PROGRAM, [folder, 'write', JSON.stringify(settings)]);
  await until(() => acknowledged(writer) > 5 || writer.ended, 'it writes', DEADLINE_MS);
  assert.ok(!writer.ended, JSON.stringify(writer.printed) + writer.errors());
  return writer;
}

/** Serves the folder after a crash and compares; yields the new server's process id. */
async function assertAllThere(t: TestContext, folder: string, writer: StartedProcess): Promise<number> {
  await until(() => writer.ended, 'the process has ended');
  let pid = 0;
  await serve(t, folder, async (database, server) => {
    pid = server.pid;
    const [row] = await database.query<{ count: bigint; last: bigint }>(
      'select count(*) as count, max(number) as last from written',
    );
    assert.ok(
      row && row.last >= BigInt(acknowledged(writer)),
      `${row?.last} of ${acknowledged(writer)} rows are there`,
    );
    assert.equal(row.count, row.last);
  });
  return pid;
}

function acknowledged(writer: StartedProcess): number {
  const last = writer.printed.at(-1);
  return typeof last === 'number' ? last : 0;
}

function serverOf(started: StartedProcess): number {
  return (started.printed[0] as { serving?: number } | undefined)?.serving ?? 0;
}

function kill(...pids: number[]): void {
  for (const pid of pids) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It has just ended on its own.
    }
  }
}
