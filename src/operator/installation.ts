/**
 * The installation that a command works on: its database, whether a gateway runs on it or not. A stopped embedded server is
 * started for the duration of the command.
 */
import { mkdirSync } from 'node:fs';
import type { Config } from '../base/config.ts';
import { openChanges } from '../storage/changes.ts';
import type { Target } from '../storage/connection.ts';
import { type Changes, type Database, openDatabase } from '../storage/database.ts';
import { socketFolderOf, startEmbedded } from '../storage/embedded.ts';
import { migrate } from '../storage/migrate.ts';
import { lockDataFolder } from '../storage/owner.ts';
import type { CommandParts } from './command.ts';

export interface Installation {
  target: Target;
  /** A gateway of this machine serves from the same data folder right now. */
  running: boolean;
}

/** A server that a gateway on this machine runs answers at once or not at all. */
const RUNNING_ANSWERS_MS = 2_000;

/**
 * Runs `work` with a reachable database server and restores the previous state.
 * @param exclusive refuse when a gateway runs on the data folder
 */
export async function withInstallation<T>(
  { config, clock, log }: Pick<CommandParts, 'config' | 'clock' | 'log'>,
  work: (installation: Installation) => Promise<T>,
  { exclusive = false }: { exclusive?: boolean } = {},
): Promise<T> {
  mkdirSync(config.dataDir, { recursive: true, mode: 0o700 });
  const lock = await lockDataFolder(config.dataDir, clock).catch((error: Error) => error);
  if (lock instanceof Error) {
    if (exclusive) throw lock;
    return work({ target: targetOf(config), running: true });
  }
  try {
    if (config.databaseUrl !== null) return await work({ target: targetOf(config), running: false });
    const embedded = await startEmbedded({ dataFolder: config.dataDir, clock, log });
    try {
      return await work({ target: { socketFolder: embedded.socketFolder }, running: false });
    } finally {
      await embedded.stop();
    }
  } finally {
    lock.release();
  }
}

export interface OpenedDatabase {
  database: Database;
  changes: Changes;
}

/** Opens a database with the schema of this version, and closes it again. */
export async function withDatabase<T>(parts: CommandParts, work: (opened: OpenedDatabase) => Promise<T>): Promise<T> {
  const { clock, log, migrations } = parts;
  return withInstallation(parts, async ({ target, running }) => {
    // A running gateway has already migrated it; this still detects a gateway of another version.
    await migrate({ target, migrations, log });
    const database = await openDatabase({
      target,
      clock,
      log,
      poolSize: 2,
      ...(running && { startTimeoutMs: RUNNING_ANSWERS_MS }),
    });
    try {
      const changes = await openChanges({ target, database, clock, log });
      try {
        return await work({ database, changes });
      } finally {
        await changes.close();
      }
    } finally {
      await database.close();
    }
  });
}

/** The database of a configuration, running or not. */
function targetOf(config: Config): Target {
  return config.databaseUrl === null
    ? { socketFolder: socketFolderOf(config.dataDir) }
    : { connectionString: config.databaseUrl.reveal() };
}
