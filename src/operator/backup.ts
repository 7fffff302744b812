/** `gatehouse backup` and `gatehouse restore`: one file that holds the installation, from and into any database. */
import { existsSync } from 'node:fs';
import path from 'node:path';
import { forgetEveryProcess } from '../spend/index.ts';
import { backup } from '../storage/archive/backup.ts';
import { restore } from '../storage/archive/restore.ts';
import { describeTarget } from '../storage/connection.ts';
import { openDatabase } from '../storage/database.ts';
import { type CommandParts, UsageError } from './command.ts';
import { type Installation, withInstallation } from './installation.ts';

export const BACKUP_HELP = `gatehouse backup FILE
    writes the database into a new file, also while the gateway runs
gatehouse restore FILE
    fills an empty installation from such a file: the data folder, or the database that DATABASE_URL names. With a
    gateway stopped before its backup this moves an installation from the embedded database to an external one`;

export async function backupCommand(args: readonly string[], parts: CommandParts): Promise<number> {
  const file = onlyFile(args);
  if (existsSync(file)) throw new UsageError(`${file} is there already`);
  const rows = await withInstallation(parts, ({ target }) =>
    backup({ target, file, version: parts.version, now: parts.clock.now() }),
  );
  parts.out.print(`${rows} rows written to ${file}`);
  return 0;
}

export async function restoreCommand(args: readonly string[], parts: CommandParts): Promise<number> {
  const file = onlyFile(args);
  const { clock, log, migrations } = parts;
  const restored = async ({ target }: Installation) => {
    const rows = await restore({ target, file, migrations, log });
    const database = await openDatabase({ target, clock, log, poolSize: 1 });
    await database.transaction(forgetEveryProcess).finally(() => database.close());
    return `${rows} rows restored into ${describeTarget(target)}`;
  };
  parts.out.print(await withInstallation(parts, restored, { alone: true }));
  return 0;
}

function onlyFile(args: readonly string[]): string {
  const [file] = args;
  if (file === undefined || args.length > 1 || file.startsWith('-')) throw new UsageError('name one file');
  return path.resolve(file);
}
