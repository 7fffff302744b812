/** `gatehouse backup` and `gatehouse restore`: one file with the whole installation, from and to any database. */
import { existsSync } from 'node:fs';
import path from 'node:path';
import { countBlobs } from '../blobs/index.ts';
import { describeSource, Sealing, SealingError } from '../sealing/index.ts';
import { forgetEveryProcess } from '../spend/index.ts';
import { backup } from '../storage/archive/backup.ts';
import { restore } from '../storage/archive/restore.ts';
import { describeTarget, type Target } from '../storage/connection.ts';
import { openDatabase } from '../storage/database.ts';
import { isColumnMissing, isTableMissing } from '../storage/unavailable.ts';
import { type CommandParts, UsageError } from './command.ts';
import { type Installation, withInstallation } from './installation.ts';

export const BACKUP_HELP = `gatehouse backup FILE
    writes the database to a new file, also while the gateway runs. The content of uploaded files is not in it
gatehouse restore FILE
    restores a backup into an empty installation: the data folder, or the database that DATABASE_URL names. To move an
    installation to an external database, stop the gateway before the backup`;

export async function backupCommand(args: readonly string[], parts: CommandParts): Promise<number> {
  const file = onlyFile(args);
  if (existsSync(file)) throw new UsageError(`${file} is there already`);
  const { rows, sealed, blobs } = await withInstallation(parts, async ({ target }) => ({
    rows: await backup({ target, file, version: parts.version, now: parts.clock.now() }),
    sealed: await holdsSealed(parts, target),
    blobs: await holdsBlobs(parts, target),
  }));
  parts.out.print(`${rows} rows written to ${file}`);
  if (sealed !== 'nothing') {
    const source = sealed instanceof SealingError ? describeSource(parts.config.sealing.current) : sealed.source;
    parts.out.print(`the key that decrypts its credentials is not in it: keep ${source} in another place`);
  }
  for (const { backend, count } of blobs) {
    const advice = backend === 'disk' ? `copy ${path.join(parts.config.dataDir, 'blobs')}` : 'it is in the S3 bucket';
    parts.out.print(`the content of ${count} files is not in it: ${advice}`);
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
  const { line, sealed } = await withInstallation(parts, restored, { exclusive: true });
  parts.out.print(line);
  if (sealed instanceof SealingError) {
    parts.out.print(
      `before its first start it needs the encryption key of the original installation: ${sealed.message}`,
    );
  }
  return 0;
}

/** Whether a database has encrypted credentials, and the problem with their key on this machine, if any. */
async function holdsSealed(
  { clock, log, config }: CommandParts,
  target: Target,
): Promise<'nothing' | { source: string } | SealingError> {
  const database = await openDatabase({ target, clock, log, poolSize: 1 });
  try {
    return (await new Sealing({ database, clock, settings: config.sealing }).check()) ?? 'nothing';
  } catch (error) {
    if (error instanceof SealingError) return error;
    // A version without this table.
    if (isTableMissing(error)) return 'nothing';
    throw error;
  } finally {
    await database.close();
  }
}

async function holdsBlobs(parts: CommandParts, target: Target): Promise<{ backend: string; count: number }[]> {
  const database = await openDatabase({ target, clock: parts.clock, log: parts.log, poolSize: 1 });
  try {
    return await countBlobs(database);
  } catch (error) {
    // A version without files, or without a bucket for them.
    if (isTableMissing(error) || isColumnMissing(error)) return [];
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
