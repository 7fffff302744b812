/** Fills a database that no gateway has used from the file of a backup, and brings it to the schema of this version. */
import { createReadStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import type pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import type { Log } from '../../base/log.ts';
import { type Target, withClient } from '../connection.ts';
import { type Migration, migrate } from '../migrate.ts';
import { ARCHIVE_FORMAT, type ArchiveFoot, type ArchiveHead, type ArchiveTable, TABLE_END } from './archive.ts';
import { columnList, quoted, tablesOf } from './tables.ts';

interface RestoreOptions {
  target: Target;
  file: string;
  migrations: readonly Migration[];
  log: Log;
}

/** Rows that are handed to the server at once. */
const BATCH_CHARACTERS = 64 * 1024;
/** No row of ours comes near. */
const MAX_LINE_CHARACTERS = 256 * 1024 * 1024;

/**
 * All of it or nothing: the rows go in in one transaction. Rejects, with a message for the operator, when the file is not
 * a whole backup, comes from a newer version, or the database is in use already. Returns the number of rows.
 */
export async function restore({ target, file, migrations, log }: RestoreOptions): Promise<number> {
  const lines = archiveLines(file);
  try {
    const head = readHead(await nextLine(lines));
    const known = new Set(migrations.map(({ name }) => name));
    const unknown = head.migrations.find((name) => !known.has(name));
    if (unknown !== undefined) {
      throw new Error(`the backup comes from a newer version of Gatehouse (${head.version}); restore it with that one`);
    }
    await withClient(target, refuseUsed);
    const had = new Set(head.migrations);
    await migrate({ target, migrations: migrations.filter(({ name }) => had.has(name)), log });
    const rows = await withClient(target, (client) => load(client, lines), { unlimited: true });
    await migrate({ target, migrations, log });
    return rows;
  } finally {
    await lines.return(undefined);
  }
}

async function load(client: pg.Client, lines: AsyncGenerator<string, undefined>): Promise<number> {
  await client.query('begin');
  const relations = await dropRelations(client);
  const tables = new Map((await tablesOf(client)).map((table) => [table.table, table]));
  const triggered = await tablesWithTriggers(client);
  await switchTriggers(client, triggered, 'disable');
  await emptyTables(client, [...tables.keys()]);
  const rows = await loadTables(client, lines, tables);
  await switchTriggers(client, triggered, 'enable');
  await addRelations(client, relations);
  await advanceIdentities(client);
  await client.query('commit');
  await client.query('analyze');
  return rows;
}

/** Rows inserted by migrations are in the backup too. Append-only tables are still empty. */
async function emptyTables(client: pg.Client, tables: readonly string[]): Promise<void> {
  const filled: string[] = [];
  for (const table of tables) {
    const { rows } = await client.query(`select 1 from ${quoted(table)} limit 1`);
    if (rows.length > 0) filled.push(quoted(table));
  }
  if (filled.length > 0) await client.query(`truncate ${filled.join(', ')}`);
}

/** Sequences continue after the numbers of the backup. */
async function advanceIdentities(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ table: string; column: string }>(
    `select c.relname as table, a.attname as column from pg_attribute a join pg_class c on c.oid = a.attrelid
     where c.relnamespace = current_schema()::regnamespace and c.relkind = 'r' and a.attidentity <> ''`,
  );
  for (const { table, column } of rows) {
    const next = `select setval(pg_get_serial_sequence($1, $2), coalesce(max(${quoted(column)}), 0) + 1, false)`;
    await client.query(`${next} from ${quoted(table)}`, [quoted(table), column]);
  }
}

async function loadTables(
  client: pg.Client,
  lines: AsyncGenerator<string, undefined>,
  known: ReadonlyMap<string, ArchiveTable>,
): Promise<number> {
  const count = { rows: 0 };
  for (;;) {
    const entry = parseLine(await nextLine(lines)) as ArchiveTable | ArchiveFoot;
    if ('end' in entry) {
      if (entry.rows !== count.rows) throw new Error(`the backup should hold ${entry.rows} rows and has ${count.rows}`);
      return count.rows;
    }
    const table = known.get(entry.table);
    const unknown = entry.columns.find((column) => !table?.columns.includes(column));
    if (table === undefined || unknown !== undefined) {
      throw new Error(`the backup names ${unknown ?? 'the table'} of ${entry.table}, which its schema does not have`);
    }
    for (const { name, bounds } of entry.partitions ?? []) {
      if (!BOUNDS.test(bounds)) throw new Error(`the backup has a partition ${name} with strange bounds`);
      const parent = quoted(entry.table);
      await client.query(`create table if not exists ${quoted(name)} partition of ${parent} ${bounds}`);
    }
    const copy = client.query(copyFrom(`copy ${quoted(entry.table)} (${columnList(entry)}) from stdin`));
    await pipeline(Readable.from(rowsOf(lines, count)), copy);
  }
}

const BOUNDS = /^(?:DEFAULT|FOR VALUES FROM \('[\d :+.-]+'\) TO \('[\d :+.-]+'\))$/;

/** The rows of one table, many at a time, up to its end. */
async function* rowsOf(lines: AsyncGenerator<string, undefined>, count: { rows: number }): AsyncGenerator<string> {
  let batch = '';
  for (;;) {
    const line = await nextLine(lines);
    if (line === TABLE_END) break;
    count.rows += 1;
    batch += `${line}\n`;
    if (batch.length > BATCH_CHARACTERS) {
      yield batch;
      batch = '';
    }
  }
  if (batch !== '') yield batch;
}

interface Relation {
  table: string;
  name: string;
  definition: string;
}

/** Tables refer to each other in circles, so rows could not be put in in any order: they are checked at the end. */
async function dropRelations(client: pg.Client): Promise<Relation[]> {
  const { rows } = await client.query<Relation>(
    `select c.relname as table, k.conname as name, pg_get_constraintdef(k.oid) as definition
     from pg_constraint k join pg_class c on c.oid = k.conrelid
     where k.contype = 'f' and k.conparentid = 0 and c.relnamespace = current_schema()::regnamespace`,
  );
  for (const { table, name } of rows)
    await client.query(`alter table ${quoted(table)} drop constraint ${quoted(name)}`);
  return rows;
}

async function addRelations(client: pg.Client, relations: readonly Relation[]): Promise<void> {
  for (const { table, name, definition } of relations) {
    await client.query(`alter table ${quoted(table)} add constraint ${quoted(name)} ${definition}`);
  }
}

async function tablesWithTriggers(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query<{ table: string }>(
    `select distinct c.relname as table from pg_trigger t join pg_class c on c.oid = t.tgrelid
     where not t.tgisinternal and t.tgparentid = 0 and c.relnamespace = current_schema()::regnamespace`,
  );
  return rows.map(({ table }) => table);
}

/** What triggers derive from rows is in the backup too, and would be there twice. */
async function switchTriggers(client: pg.Client, tables: readonly string[], to: 'disable' | 'enable'): Promise<void> {
  for (const table of tables) await client.query(`alter table ${quoted(table)} ${to} trigger user`);
}

/** A database whose gateway has started once has an organization. */
async function refuseUsed(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ there: boolean }>(`select to_regclass('organizations') is not null as there`);
  if (rows[0]?.there !== true) return;
  const used = await client.query('select 1 from organizations limit 1');
  if (used.rows.length > 0) throw new Error('the database is in use: a backup is restored into an empty one only');
}

/** Split at line feeds alone: texts may hold what other readers take for the end of a line too. */
async function* archiveLines(file: string): AsyncGenerator<string, undefined> {
  const packed = createReadStream(file);
  const unpacked = createGunzip();
  packed.on('error', (error) => unpacked.destroy(error));
  packed.pipe(unpacked);
  unpacked.setEncoding('utf8');
  let rest = '';
  try {
    for await (const chunk of unpacked as AsyncIterable<string>) {
      const lines = (rest + chunk).split('\n');
      rest = lines.pop() ?? '';
      if (rest.length > MAX_LINE_CHARACTERS) throw new Error('a line of it has no end');
      yield* lines;
    }
  } catch (error) {
    throw new Error(`the backup cannot be read: ${(error as Error).message}`, { cause: error });
  } finally {
    unpacked.destroy();
    packed.destroy();
  }
  return undefined;
}

async function nextLine(lines: AsyncGenerator<string, undefined>): Promise<string> {
  const { value, done } = await lines.next();
  if (done) throw new Error('the backup is cut off: it has no end');
  return value;
}

function readHead(line: string): ArchiveHead {
  const head = parseLine(line) as Partial<ArchiveHead> | null;
  if (head?.format !== ARCHIVE_FORMAT) throw new Error('this is not a backup that this version knows');
  return head as ArchiveHead;
}

function parseLine(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    throw new Error('this is not a backup, or it is damaged');
  }
}
