/** Brings a database to the schema that the code expects. */
import { createHash } from 'node:crypto';
import type pg from 'pg';
import type { Log } from '../base/log.ts';
import { type Target, withClient } from './connection.ts';
import { keepAlive } from './keep-alive.ts';
import { checkServer } from './server-check.ts';
import { isTableMissing } from './unavailable.ts';

/**
 * One step of the schema, a file `NNNN-name.ts` in the `migrations` folder of the resource that owns the tables. Numbers
 * are unique over all folders and give the order. A step that has been released is never changed: add another.
 */
export interface Migration {
  /** The file's name without its ending, e.g. `0010-keys`. */
  name: string;
  /** Statements, separated by semicolons; they run in one transaction, so none may need to be outside of one. */
  sql: string;
}

interface MigrateOptions {
  target: Target;
  /** Every migration of every folder, in any order. */
  migrations: readonly Migration[];
  log: Log;
}

/** An arbitrary number that nothing else uses for advisory locks. */
const MIGRATION_LOCK = 0x6d696772;

/**
 * Runs what has not run yet, each migration in a transaction of its own; of several processes that start at once, one does
 * each and the others wait. Rejects when the database has run a migration that this code does not know (a newer version
 * has been here) or knows differently, and one that cannot be used at all, which is left as it is. Returns the names of those that this call has run.
 */
export async function migrate({ target, migrations, log }: MigrateOptions): Promise<string[]> {
  const problems = migrationProblems(migrations.map(({ name }) => name));
  if (problems.length > 0) throw new Error(problems.join('; '));
  const ordered = inOrder(migrations);
  const run = async (client: pg.Client) => {
    const done: string[] = [];
    await checkServer(client);
    for (;;) {
      // Most starts have nothing to do, and learn it from one statement without a lock.
      const next = pending(ordered, await readApplied(client))[0];
      if (!next) {
        if (done.length > 0) log.info('migrated the database', { migrations: done.length, last: done.at(-1) });
        return done;
      }
      const ran = await runNext(client, ordered);
      if (!ran) continue;
      log.debug('ran a migration', { migration: ran });
      done.push(ran);
    }
  };
  // A migration may take long, and so may the wait for another process's.
  return keepAlive(() => withClient(target, run, { unlimited: true }));
}

/** Names of those that have not run; rejects like `migrate`, and changes nothing. */
export async function pendingMigrations({ target, migrations }: Omit<MigrateOptions, 'log'>): Promise<string[]> {
  const applied = await withClient(target, readApplied);
  return pending(inOrder(migrations), applied).map(({ name }) => name);
}

function inOrder(migrations: readonly Migration[]): Migration[] {
  return migrations.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** What is wrong with a set of migration names; the project's tests keep it empty over the files of all folders. */
export function migrationProblems(names: readonly string[]): string[] {
  const problems: string[] = [];
  const seen = new Map<number, string>();
  for (const name of names) {
    const match = /^(\d{4})-[a-z0-9]+(-[a-z0-9]+)*$/.exec(name);
    if (!match) {
      problems.push(`migration ${JSON.stringify(name)} is not named NNNN-words-of-its-subject`);
      continue;
    }
    const number = Number(match[1]);
    const other = seen.get(number);
    if (other !== undefined) problems.push(`migrations ${other} and ${name} have the same number`);
    seen.set(number, name);
  }
  // Each folder has blocks of ten numbers, used from the first on, so a gap inside a block is a lost file.
  for (const number of seen.keys()) {
    const first = number < BLOCK ? 1 : number - (number % BLOCK);
    if (number > first && !seen.has(number - 1)) problems.push(`migration ${seen.get(number)} comes after a gap`);
  }
  return problems;
}

const BLOCK = 10;

interface Applied {
  name: string;
  checksum: string;
}

async function readApplied(client: pg.Client): Promise<Applied[]> {
  try {
    return (await client.query<Applied>('select name, checksum from migrations order by name')).rows;
  } catch (error) {
    if (isTableMissing(error)) return [];
    throw error;
  }
}

/** Those that have not run; rejects a database that is not an earlier state of `ordered`. */
function pending(ordered: readonly Migration[], applied: readonly Applied[]): Migration[] {
  const known = new Map(ordered.map((migration) => [migration.name, migration]));
  for (const { name, checksum } of applied) {
    const migration = known.get(name);
    if (!migration) {
      throw new Error(
        `the database is newer than this version of Gatehouse (it has run migration ${name}); start the newer version`,
      );
    }
    if (checksumOf(migration) !== checksum) {
      throw new Error(`migration ${name} has run on this database in another form; the installed files were changed`);
    }
  }
  const ran = new Set(applied.map(({ name }) => name));
  return ordered.filter(({ name }) => !ran.has(name));
}

/** Runs one migration, unless another process did while we waited for the lock. */
async function runNext(client: pg.Client, ordered: readonly Migration[]): Promise<string | undefined> {
  await client.query('begin');
  try {
    await client.query('select pg_advisory_xact_lock($1)', [MIGRATION_LOCK]);
    await client.query(`create table if not exists migrations (
      name text primary key,
      checksum text not null,
      applied_at timestamptz not null default now()
    )`);
    const next = pending(ordered, await readApplied(client))[0];
    if (next) {
      await runOne(client, next);
      await client.query('insert into migrations (name, checksum) values ($1, $2)', [next.name, checksumOf(next)]);
    }
    await client.query('commit');
    return next?.name;
  } catch (error) {
    await client.query('rollback').catch(() => {});
    throw error;
  }
}

async function runOne(client: pg.Client, { name, sql }: Migration): Promise<void> {
  try {
    await client.query(sql);
  } catch (error) {
    throw new Error(`migration ${name} failed, nothing of it was kept: ${(error as Error).message}`, { cause: error });
  }
}

/** White space may be tidied up; nothing else may change. */
function checksumOf({ sql }: Migration): string {
  return createHash('sha256').update(sql.trim().replace(/\s+/g, ' ')).digest('hex');
}
