/**
 * A fresh database for each test, from one embedded server per test process. The server starts with the first database
 * that is asked for and ends with the process. Its cluster is a copy of one that is made once per machine and user.
 *
 * With GATEHOUSE_TEST_DATABASE_URL the databases are made on that server instead, so that the same tests show that
 * everything works on the oldest PostgreSQL we support; its role must be allowed to create databases.
 */
import { hash, randomBytes } from 'node:crypto';
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
  statSync,
  utimesSync,
} from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { after, type TestContext } from 'node:test';
import pg from 'pg';
import manifest from '../../../package.json' with { type: 'json' };
import { type Clock, systemClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { installJobs } from '../../jobs/index.ts';
import { clientConfig, type Target, withClient } from '../../storage/connection.ts';
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
const PREPARED = `${PREFIX}cluster-`;
/** How long an unused prepared cluster is kept. */
const KEPT_MS = 24 * 3_600_000;
/** A database of the prepared cluster, with the migrations of the gateway and the tables of its jobs. */
const GATEWAY_TEMPLATE = 'gateway_template';
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

/** A data folder with a cluster whose database is migrated, for tests that start servers of their own. */
export async function dataFolder(test: Pick<TestContext, 'after'>, path?: string): Promise<string> {
  const data = join(emptyFolder(test, CLUSTERS), path ?? 'data');
  cpSync(await preparedCluster(), data, { recursive: true });
  return data;
}

/** Its cluster has been stopped, and its databases are migrated: copying takes a tenth of the time that making it does. */
async function preparedCluster(): Promise<string> {
  const { migrations } = await import('../../migrations.ts');
  const version = hash('sha256', JSON.stringify([migrations, manifest.dependencies['pg-boss']])).slice(0, 12);
  const prepared = join(CLUSTERS, `${PREPARED}${userInfo({ encoding: 'utf8' }).uid}-18-${version}`);
  if (existsSync(prepared)) {
    const now = new Date();
    utimesSync(prepared, now, now);
    return prepared;
  }
  const temporary = mkdtempSync(join(CLUSTERS, `${PREFIX}${process.pid}-`));
  const made = await startEmbedded({
    dataFolder: temporary,
    clock: systemClock,
    log: silentLog,
    settings: FAST_SETTINGS,
  });
  const { socketFolder } = made;
  await withClient({ socketFolder }, async (client) => {
    await client.query(`create database ${GATEWAY_TEMPLATE}`);
  });
  for (const database of [GATEWAY_TEMPLATE, 'postgres']) await migrated({ socketFolder, database }, migrations, true);
  await made.stop();
  try {
    renameSync(temporary, prepared);
  } catch {
    // Another test process was faster.
    rmSync(temporary, { recursive: true, force: true });
  }
  return prepared;
}

/** Folders of test processes that were killed, and clusters that no test has used for a day. */
function removeLeftovers(): void {
  for (const where of new Set([CLUSTERS, tmpdir()])) {
    for (const name of readdirSync(where)) {
      const folder = join(where, name);
      const pid = new RegExp(`^${PREFIX}(\\d+)-`).exec(name)?.[1];
      const left = pid === undefined ? name.startsWith(PREPARED) && isOld(folder) : !alive(Number(pid));
      if (left) rmSync(folder, { recursive: true, force: true });
    }
  }
}

function isOld(folder: string): boolean {
  const used = statSync(folder, { throwIfNoEntry: false })?.mtimeMs ?? Date.now();
  return Date.now() - used > KEPT_MS;
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

async function templateFor(migrations: readonly Migration[], withJobs: boolean): Promise<string> {
  if (migrations.length === 0 && !withJobs) return 'template1';
  const isGateways = migrations === (await import('../../migrations.ts')).migrations && withJobs;
  if (isGateways && !EXTERNAL_URL) return GATEWAY_TEMPLATE;
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
  await migrated(await targetFor(name), migrations, withJobs);
  return name;
}

async function migrated(target: Target, migrations: readonly Migration[], withJobs: boolean): Promise<void> {
  await migrate({ target, migrations, log: silentLog });
  if (withJobs) await installJobs(target);
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
