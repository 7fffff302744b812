/** `gatehouse backup` and `gatehouse restore`: one file that holds the installation, from and into any database. */
import { existsSync } from 'node:fs';
import path from 'node:path';
import { placeOf, Sealing, SealingError } from '../sealing/index.ts';
import { forgetEveryProcess } from '../spend/index.ts';
import { backup } from '../storage/archive/backup.ts';
import { restore } from '../storage/archive/restore.ts';
import { describeTarget, type Target } from '../storage/connection.ts';
import { openDatabase } from '../storage/database.ts';
import { isTableMissing } from '../storage/unavailable.ts';
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
  const { rows, sealed } = await withInstallation(parts, async ({ target }) => ({
    rows: await backup({ target, file, version: parts.version, now: parts.clock.now() }),
    sealed: await holdsSealed(parts, target),
  }));
  parts.out.print(`${rows} rows written to ${file}`);
  if (sealed !== 'nothing') {
    const place = sealed instanceof SealingError ? placeOf(parts.config.sealing.current) : sealed.place;
    parts.out.print(`the key that credentials in it are sealed under is not in it: keep ${place} in another place`);
  }
  return 0;
}

export async function restoreCommand(args: readonly string[], parts: CommandParts): Promise<number> {
  const file = onlyFile(args);
  const { clock, log, migrations } = parts;
  const restored = async ({ target }: Installation) => {
    const rows = await restore({ target, file, migrations, log });
    const database = await openDatabase({ target, clock, log, poolSize: 1 });
    await database.transaction(forgetEveryProcess).finally(() => database.close());
    return { line: `${rows} rows restored into ${describeTarget(target)}`, sealed: await holdsSealed(parts, target) };
  };
  const { line, sealed } = await withInstallation(parts, restored, { alone: true });
  parts.out.print(line);
  if (sealed instanceof SealingError) {
    parts.out.print(
      `before its first start it needs the key of the installation that it comes from: ${sealed.message}`,
    );
  }
  return 0;
}

/** Whether a database has credentials that are sealed, and what is wrong with the key to them here. */
async function holdsSealed(
  { clock, log, config }: CommandParts,
  target: Target,
): Promise<'nothing' | { place: string } | SealingError> {
  const database = await openDatabase({ target, clock, log, poolSize: 1 });
  try {
    return (await new Sealing({ database, clock, settings: config.sealing }).check()) ?? 'nothing';
  } catch (error) {
    if (error instanceof SealingError) return error;
    // Of a version that had no such table.
    if (isTableMissing(error)) return 'nothing';
    throw error;
  } finally {
    await database.close();
  }
}

function onlyFile(args: readonly string[]): string {
  const [file] = args;
  if (file === undefined || args.length > 1 || file.startsWith('-')) throw new UsageError('name one file');
  return path.resolve(file);
}
