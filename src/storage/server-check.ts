/** Whether a PostgreSQL server can be used: it answers, is new enough, and has UTF-8, UTC and ISO dates. Nothing is written before this. */
import type pg from 'pg';
import { type Clock, sleep } from '../base/clock.ts';
import { describeTarget, SESSION_PARAMETERS, type Target, withClient } from './connection.ts';
import { keepAlive } from './keep-alive.ts';
import { isConnectionLost } from './unavailable.ts';

interface ReachOptions {
  target: Target;
  clock: Clock;
  /** How long the first connection is tried for, e.g. while the server's container starts. Default 15 s. */
  startTimeoutMs?: number | undefined;
}

const MIN_SERVER_VERSION = 150_000;
const START_TIMEOUT_MS = 15_000;
const START_POLL_MS = 100;

/** The server is there, and its operator has to change something. */
class UnusableServer extends Error {}

/** Waits until the server answers; rejects with words for the operator when it cannot be used. */
export async function reachServer({ target, clock, startTimeoutMs = START_TIMEOUT_MS }: ReachOptions): Promise<void> {
  const deadline = clock.monotonic() + startTimeoutMs;
  await keepAlive(async () => {
    for (;;) {
      try {
        return await withClient(target, checkServer);
      } catch (error) {
        const name = describeTarget(target);
        const refused = /unsupported startup parameter[^:]*: (\w+)/.exec((error as Error).message)?.[1];
        if (refused !== undefined)
          throw new Error(`${name} cannot be used: ${poolerRefusal(refused)}`, { cause: error });
        if (error instanceof UnusableServer) throw new Error(`${name} cannot be used: ${error.message}`);
        if (!isConnectionLost(error) || clock.monotonic() > deadline) {
          throw new Error(`${name} cannot be used: ${(error as Error).message}`, { cause: error });
        }
        await sleep(clock, START_POLL_MS);
      }
    }
  });
}

/** PgBouncer closes connections that send settings which it does not know. Waiting does not help. */
function poolerRefusal(parameter: string): string {
  return (
    `its connection pooler refuses the session setting ${parameter}: add ${SESSION_PARAMETERS.join(', ')} to ` +
    'ignore_startup_parameters in pgbouncer.ini, or let DATABASE_URL name the server itself'
  );
}

interface ServerFacts {
  version: number;
  name: string;
  zone: string;
  encoding: string;
  dateStyle: string;
  strings: string;
  role: string;
  database: string;
  /** The schema of the job runner exists or can be created. */
  hasJobs: boolean;
}

/** Rejects when the server at the other end cannot be used. */
export async function checkServer(client: pg.Client): Promise<void> {
  const { rows } = await client.query<ServerFacts>(
    `select current_setting('server_version_num')::int as version, current_setting('server_version') as name,
       current_setting('TimeZone') as zone, current_setting('server_encoding') as encoding,
       current_setting('DateStyle') as "dateStyle", current_setting('standard_conforming_strings') as strings,
       current_user as role, current_database() as database,
       has_database_privilege(current_database(), 'CREATE') or to_regclass('gatehouse_jobs.version') is not null
         as "hasJobs"`,
  );
  const server = rows[0];
  if (!server || server.version < MIN_SERVER_VERSION) {
    throw new UnusableServer(`PostgreSQL ${server?.name} is too old: Gatehouse needs 15 or newer`);
  }
  if (server.encoding !== 'UTF8') {
    throw new UnusableServer(
      `the database's encoding is ${server.encoding}: Gatehouse needs UTF8, as in "create database ... template template0 encoding 'UTF8'"`,
    );
  }
  if (!server.hasJobs) {
    throw new UnusableServer(
      `the role ${server.role} may not create schemas: run "grant create on database ${server.database} to ${server.role}"`,
    );
  }
  // Sessions are started with the right settings. The options of a DATABASE_URL replace them, and poolers may drop them.
  if (!server.dateStyle.startsWith('ISO')) {
    throw new UnusableServer(
      `sessions have the DateStyle ${server.dateStyle}: add "-c DateStyle=ISO" to the options of DATABASE_URL`,
    );
  }
  if (server.strings !== 'on') {
    throw new UnusableServer(
      'sessions have standard_conforming_strings off: add "-c standard_conforming_strings=on" to the options of DATABASE_URL',
    );
  }
  if (server.zone !== 'UTC' && !(await isAlwaysUtc(client))) {
    throw new UnusableServer(
      `sessions are in the time zone ${server.zone}: add "-c TimeZone=UTC" to the options of DATABASE_URL`,
    );
  }
}

/**
 * UTC has many names (`Etc/UTC`, `Zulu`, `GMT0`), and a zone such as Europe/London only looks like it in winter. So the
 * server is asked for the offset of the session's zone over the years in which rows are written.
 */
async function isAlwaysUtc(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query<{ utc: boolean }>(
    `select bool_and(extract(timezone from moment) = 0) as utc
       from generate_series(timestamptz '2020-01-01 00:00+00', timestamptz '2037-12-31 00:00+00', interval '240 hours') moment`,
  );
  return rows[0]?.utc === true;
}
