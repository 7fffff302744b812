/**
 * A fresh database for each test, from one embedded server per test process. The server starts with the first database
 * that is asked for and ends with the process. Its cluster is a copy of one that is made once per machine and user.
 *
 * With GATEHOUSE_TEST_DATABASE_URL the databases are made on that server instead, so that the same tests show that
 * everything works on the oldest PostgreSQL we support; its role must be allowed to create databases.
 */
import { randomBytes } from 'node:crypto';
import {
  accessSync,
  constants,
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statfsSync,
} from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { after, type TestContext } from 'node:test';
import pg from 'pg';
import { type Clock, systemClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { installJobs } from '../../jobs/index.ts';
import { clientConfig, type Target } from '../../storage/connection.ts';
import { type Database, openDatabase } from '../../storage/database.ts';
import { type EmbeddedServer, startEmbedded } from '../../storage/embedded.ts';
import { type Migration, migrate } from '../../storage/migrate.ts';

export interface TestDatabase {
  database: Database;
  /** For what opens connections of its own. */
  target: Target;
}

export interface TestDatabaseOptions {
  migrations?: readonly Migration[];
  /** The database's clock; default the real one. */
  clock?: Clock;
  poolSize?: number;
}

/** Opens a new database with these migrations; it is closed and dropped when the test ends. */
export async function freshDatabase(
  test: Pick<TestContext, 'after'>,
  { migrations = [], clock = systemClock, poolSize = 5 }: TestDatabaseOptions = {},
): Promise<TestDatabase> {
  const target = await emptyDatabase(test, migrations);
  const database = await openDatabase({ target, clock, log: silentLog, poolSize });
  test.after(() => database.close());
  return { database, target };
}

/** As `freshDatabase`, without connecting to it. @param withJobs with the tables of the job runner */
export async function emptyDatabase(
  test: Pick<TestContext, 'after'>,
  migrations: readonly Migration[] = [],
  withJobs = false,
): Promise<Target> {
  const template = await templateFor(migrations, withJobs);
  for (const used of disposable.splice(0)) await administer(`drop database ${used} with (force)`);
  const name = `test_${RUN}_${++created}`;
  await administer(`create database ${name} template ${template} strategy file_copy`);
  // Dropped later: what the test has opened is closed by hooks that come after this one.
  test.after(() => void disposable.push(name));
  return targetFor(name);
}

/** For processes that are told where the database is. */
export function databaseUrl(target: Target): string {
  if ('connectionString' in target) return target.connectionString;
  return `postgresql://postgres@/${target.database ?? 'postgres'}?host=${encodeURIComponent(target.socketFolder)}`;
}

/** A plain connection, closed when the test ends. */
export async function connectOnce(test: Pick<TestContext, 'after'>, target: Target): Promise<pg.Client> {
  const client = new pg.Client(clientConfig(target));
  client.on('error', () => {});
  await client.connect();
  test.after(() => client.end());
  return client;
}

const EXTERNAL_URL = process.env['GATEHOUSE_TEST_DATABASE_URL'];
const PREFIX = 'gatehouse-test-';
const MEMORY = '/dev/shm';
const ENOUGH_MEMORY_BYTES = 4 * 1024 ** 3;
/**
 * Where clusters are, in memory where there is room: making and removing the thousand files of a database again and again
 * takes ext4 five times as long, as it never reuses what was removed within the last seconds.
 */
const CLUSTERS = roomInMemory() ? MEMORY : tmpdir();
/** Nothing that a test writes has to survive a crash. */
const FAST_SETTINGS = {
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
  shared_buffers: '16MB',
  autovacuum: 'off',
  // A process runs many test files, and most keep their gateway open until the end.
  max_connections: '500',
};

/** Several test processes may share an external server. */
const RUN = randomBytes(4).toString('hex');
let created = 0;
const disposable: string[] = [];
let starting: Promise<EmbeddedServer> | undefined;
let folder: string | undefined;
const templates = new Map<string, Promise<string>>();
/** `create database` locks its template, so one at a time. */
let queue: Promise<unknown> = Promise.resolve();
let administrator: pg.Client | undefined;

after(async () => {
  if (EXTERNAL_URL) await dropAll();
  await administrator?.end();
  await (await starting)?.stop();
  if (folder) rmSync(folder, { recursive: true, force: true });
});

async function dropAll(): Promise<void> {
  const made = await Promise.all(templates.values());
  for (const name of [...disposable, ...made]) await administer(`drop database ${name} with (force)`);
}

async function targetFor(database: string): Promise<Target> {
  if (!EXTERNAL_URL) return { socketFolder: (await server()).socketFolder, database };
  const url = new URL(EXTERNAL_URL);
  url.pathname = `/${database}`;
  return { connectionString: url.href };
}

/** The server of this test process. */
function server(): Promise<EmbeddedServer> {
  starting ??= startServer();
  return starting;
}

async function startServer(): Promise<EmbeddedServer> {
  removeLeftovers();
  folder = mkdtempSync(join(CLUSTERS, `${PREFIX}${process.pid}-`));
  cpSync(await preparedCluster(), folder, { recursive: true });
  return startEmbedded({ dataFolder: folder, clock: systemClock, log: silentLog, settings: FAST_SETTINGS });
}

/** A folder that is removed when the test ends. */
export function emptyFolder(test: Pick<TestContext, 'after'>, where = tmpdir()): string {
  const root = mkdtempSync(join(where, `${PREFIX}${process.pid}-`));
  test.after(() => rmSync(root, { recursive: true, force: true }));
  return root;
}

/** A data folder with a cluster whose server has never run, for tests that start servers of their own. */
export async function dataFolder(test: Pick<TestContext, 'after'>, path?: string): Promise<string> {
  const data = join(emptyFolder(test, CLUSTERS), path ?? 'data');
  cpSync(await preparedCluster(), data, { recursive: true });
  return data;
}

/** A stopped cluster to copy, which takes a tenth of the time that making one does. */
async function preparedCluster(): Promise<string> {
  const prepared = join(CLUSTERS, `${PREFIX}cluster-${userInfo({ encoding: 'utf8' }).uid}-18`);
  if (existsSync(prepared)) return prepared;
  const temporary = mkdtempSync(join(CLUSTERS, `${PREFIX}${process.pid}-`));
  const made = await startEmbedded({
    dataFolder: temporary,
    clock: systemClock,
    log: silentLog,
    settings: FAST_SETTINGS,
  });
  await made.stop();
  try {
    renameSync(temporary, prepared);
  } catch {
    // Another test process was faster.
    rmSync(temporary, { recursive: true, force: true });
  }
  return prepared;
}

/** Folders of test processes that were killed. */
function removeLeftovers(): void {
  for (const where of new Set([CLUSTERS, tmpdir()])) {
    for (const name of readdirSync(where)) {
      const pid = new RegExp(`^${PREFIX}(\\d+)-`).exec(name)?.[1];
      if (pid && !alive(Number(pid))) rmSync(join(where, name), { recursive: true, force: true });
    }
  }
}

function roomInMemory(): boolean {
  try {
    accessSync(MEMORY, constants.W_OK);
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize >= ENOUGH_MEMORY_BYTES;
  } catch {
    return false;
  }
}

function alive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

function templateFor(migrations: readonly Migration[], withJobs: boolean): Promise<string> {
  if (migrations.length === 0 && !withJobs) return Promise.resolve('template1');
  const key = JSON.stringify({ migrations, withJobs });
  let template = templates.get(key);
  if (!template) {
    template = makeTemplate(`template_${RUN}_${templates.size + 1}`, migrations, withJobs);
    templates.set(key, template);
  }
  return template;
}

async function makeTemplate(name: string, migrations: readonly Migration[], withJobs: boolean): Promise<string> {
  await administer(`create database ${name}`);
  const target = await targetFor(name);
  await migrate({ target, migrations, log: silentLog });
  if (withJobs) await installJobs(target);
  return name;
}

function administer(sql: string): Promise<void> {
  const run = queue.then(async () => {
    administrator ??= await connectAdministrator();
    await administrator.query(sql);
  });
  queue = run.catch(() => {});
  return run;
}

/** One for all databases: each connection is a process that the server has to start. */
async function connectAdministrator(): Promise<pg.Client> {
  const client = new pg.Client(clientConfig(await targetFor('postgres')));
  client.on('error', () => {
    administrator = undefined;
  });
  await client.connect();
  return client;
}
