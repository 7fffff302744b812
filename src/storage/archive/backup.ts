/** Writes everything that an installation has in its database into one file, while it is in use. */
import { createWriteStream, renameSync, rmSync } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type pg from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import { type Target, withClient } from '../connection.ts';
import { ARCHIVE_FORMAT, type ArchiveFoot, type ArchiveHead, TABLE_END } from './archive.ts';
import { appliedMigrations, columnList, quoted, tablesOf } from './tables.ts';

interface BackupOptions {
  target: Target;
  file: string;
  version: string;
  /** Wall time in ms. */
  now: number;
}

const LINE_FEED = 10;

/**
 * One consistent state, as of the moment at which it begins. The file (mode 0600: it holds hashes of keys and what users
 * wrote in names) appears under its name when it is whole. Returns the number of rows.
 */
export async function backup({ target, file, version, now }: BackupOptions): Promise<number> {
  const unfinished = `${file}.unfinished`;
  const count = { rows: 0 };
  const write = async (client: pg.Client) => {
    await client.query('begin isolation level repeatable read read only');
    const lines = Readable.from(archiveOf(client, version, now, count));
    await pipeline(lines, createGzip(), createWriteStream(unfinished, { mode: 0o600, flags: 'w', flush: true }));
  };
  try {
    await withClient(target, write, { unlimited: true });
    renameSync(unfinished, file);
  } catch (error) {
    rmSync(unfinished, { force: true });
    throw error;
  }
  return count.rows;
}

async function* archiveOf(
  client: pg.Client,
  version: string,
  now: number,
  count: { rows: number },
): AsyncGenerator<string | Buffer> {
  const migrations = await appliedMigrations(client);
  const head: ArchiveHead = {
    format: ARCHIVE_FORMAT,
    version,
    taken_at: new Date(now).toISOString(),
    migrations,
  };
  yield `${JSON.stringify(head)}\n`;
  for (const table of await tablesOf(client)) {
    yield `${JSON.stringify(table)}\n`;
    const select = `select ${columnList(table)} from ${quoted(table.table)}`;
    const rows = client.query(copyTo(`copy (${select}) to stdout`));
    for await (const chunk of rows as AsyncIterable<Buffer>) {
      count.rows += lineFeeds(chunk);
      yield chunk;
    }
    yield `${TABLE_END}\n`;
  }
  const foot: ArchiveFoot = { end: true, rows: count.rows };
  yield `${JSON.stringify(foot)}\n`;
}

function lineFeeds(chunk: Buffer): number {
  let count = 0;
  for (let at = chunk.indexOf(LINE_FEED); at !== -1; at = chunk.indexOf(LINE_FEED, at + 1)) count += 1;
  return count;
}
