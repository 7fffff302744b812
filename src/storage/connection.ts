/** How one connection to PostgreSQL is made, the same for the pool, the listener and the launcher. */

import { createHash } from 'node:crypto';
import { closeSync, openSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';

/** Where the server is: a URL of an external one, or the folder with the embedded one's Unix socket. */
export type Target = { connectionString: string } | { socketFolder: string; database?: string };

/** The only user of the embedded cluster; every process that can enter the socket's folder (mode 0700) is trusted. */
export const EMBEDDED_USER = 'postgres';
const EMBEDDED_PORT = 5432;
/** `sun_path` holds 108 bytes with its terminator (104 on macOS). */
const SOCKET_PATH_LIMIT = process.platform === 'linux' ? 107 : 103;

const CONNECT_TIMEOUT_MS = 5_000;
const STATEMENT_TIMEOUT_MS = 60_000;
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 60_000;
/** Settings that change what times and texts mean. A database or a role may have other defaults. */
const SESSION_OPTIONS = '-c TimeZone=UTC -c DateStyle=ISO -c standard_conforming_strings=on';

/** Startup parameters that every connection sends and that poolers may not know. */
export const SESSION_PARAMETERS = ['statement_timeout', 'idle_in_transaction_session_timeout', 'options'] as const;

/** `pg` settings for a target: int8 as bigint, dates as text, UTC, every wait bounded. */
export function clientConfig(target: Target): pg.ClientConfig {
  const common: pg.ClientConfig = {
    types: { getTypeParser } as pg.CustomTypesConfig,
    application_name: 'gatehouse',
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    statement_timeout: STATEMENT_TIMEOUT_MS,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_TIMEOUT_MS,
    options: SESSION_OPTIONS,
  };
  if ('connectionString' in target) {
    return {
      ...common,
      connectionString: target.connectionString,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
      // A peer that vanished without a word is noticed here; the server's own timeout cannot reach us then.
      query_timeout: STATEMENT_TIMEOUT_MS + 5_000,
    };
  }
  // Everything is named, so that PGUSER, PGPASSWORD and their like do not leak in from the environment.
  return {
    ...common,
    host: connectableFolder(target.socketFolder),
    port: EMBEDDED_PORT,
    user: EMBEDDED_USER,
    password: '',
    database: target.database ?? EMBEDDED_USER,
    ssl: false,
  };
}

/**
 * Runs `work` on a connection of its own.
 * @param unlimited for work that may take long or wait for other work: no statement counts as hung
 */
export async function withClient<T>(
  target: Target,
  work: (client: pg.Client) => Promise<T>,
  { unlimited = false }: { unlimited?: boolean } = {},
): Promise<T> {
  const client = new pg.Client({
    ...clientConfig(target),
    ...(unlimited && { statement_timeout: 0, query_timeout: 0 }),
  });
  // The next statement reports a lost connection.
  client.on('error', () => {});
  try {
    await client.connect();
    return await work(client);
  } finally {
    await client.end().catch(() => {});
  }
}

/** The target as it may be shown in a log: host and database, never a password. */
export function describeTarget(target: Target): string {
  if ('socketFolder' in target) return `the embedded PostgreSQL in ${target.socketFolder}`;
  try {
    const url = new URL(target.connectionString);
    return `PostgreSQL at ${url.host}${url.pathname}`;
  } catch {
    return 'PostgreSQL at DATABASE_URL';
  }
}

const shortFolders = new Map<string, string>();

/**
 * A name of the folder that is short enough for a socket address. On Linux that is a descriptor of this process, so it
 * holds for any depth, leaves nothing behind and cannot be squatted; elsewhere it is a symbolic link in the user's own
 * temporary folder.
 */
function connectableFolder(folder: string): string {
  if (Buffer.byteLength(join(folder, `.s.PGSQL.${EMBEDDED_PORT}`)) <= SOCKET_PATH_LIMIT) return folder;
  const known = shortFolders.get(folder);
  if (known) return known;
  let short: string;
  if (process.platform === 'linux') {
    short = `/proc/self/fd/${openSync(folder, 'r')}`;
  } else {
    const hash = createHash('sha256').update(folder).digest('hex').slice(0, 16);
    short = join(tmpdir(), `gatehouse-${hash}-${process.pid}`);
    rmSync(short, { force: true });
    symlinkSync(folder, short);
  }
  shortFolders.set(folder, short);
  return short;
}

/** Forgets the short name of a folder that is no longer served. */
export function releaseFolder(folder: string): void {
  const short = shortFolders.get(folder);
  shortFolders.delete(folder);
  if (short === undefined) return;
  const descriptor = /^\/proc\/self\/fd\/(\d+)$/.exec(short)?.[1];
  if (descriptor === undefined) rmSync(short, { force: true });
  else closeSync(Number(descriptor));
}

const INT8 = 20;
const INT8_ARRAY = 1016;
const DATE = 1082;
const TIMESTAMP = 1114;

/**
 * int8 -> bigint, numeric -> text (no float drift), timestamptz -> Date, json and jsonb -> value. `date` and
 * `timestamp` name no moment without a zone and stay text.
 */
function getTypeParser(oid: number, format?: 'text' | 'binary'): unknown {
  if (format === 'binary') return pg.types.getTypeParser(oid, format);
  if (oid === INT8) return BigInt;
  if (oid === INT8_ARRAY) return parseBigintArray;
  if (oid === DATE || oid === TIMESTAMP) return String;
  return pg.types.getTypeParser(oid, 'text');
}

function parseBigintArray(text: string): (bigint | null)[] {
  if (text === '{}') return [];
  return text
    .slice(1, -1)
    .split(',')
    .map((item) => (item === 'NULL' ? null : BigInt(item)));
}
