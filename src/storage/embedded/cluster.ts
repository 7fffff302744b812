/** The cluster's folder: made whole or not at all, and fit for the account that the server runs as. */
import { spawn } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  fsyncSync,
  lchownSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { type Clock, sleep } from '../../base/clock.ts';
import { EMBEDDED_USER } from '../connection.ts';
import type { Account } from './account.ts';
import type { Binaries } from './binaries.ts';
import { processesIn } from './processes.ts';

const INITDB_WAIT_MS = 60_000;
const POLL_MS = 20;

interface ClusterOptions {
  binaries: Binaries;
  account: Account | undefined;
  clock: Clock;
  /** Whether a new cluster has to survive a power loss. */
  durable: boolean;
}

/**
 * Makes the cluster unless it is there. initdb works in a sibling folder that is renamed when complete, so one that was
 * killed half-way leaves nothing that looks like a cluster; what it left is removed here.
 */
export async function ensureCluster(cluster: string, options: ClusterOptions): Promise<void> {
  const { binaries, account, clock } = options;
  mkdirSync(dirname(cluster), { recursive: true, mode: 0o700 });
  await clearUnfinished(cluster, clock);
  for (let attempt = 1; !isCluster(cluster); attempt++) await createCluster(cluster, options, attempt);
  const major = readVersion(cluster);
  if (major !== binaries.major) {
    throw new Error(
      `${cluster} was written by PostgreSQL ${major}, and this version of Gatehouse brings ${binaries.major}; ` +
        'move the data with the old version, or serve the folder by a PostgreSQL of its own and set DATABASE_URL',
    );
  }
  claim(cluster, account);
}

export function isCluster(cluster: string): boolean {
  return existsSync(join(cluster, 'PG_VERSION'));
}

async function clearUnfinished(cluster: string, clock: Clock): Promise<void> {
  const parent = dirname(cluster);
  const deadline = clock.monotonic() + INITDB_WAIT_MS;
  for (const name of readdirSync(parent)) {
    if (!name.startsWith(`${basename(cluster)}.new-`)) continue;
    const folder = join(parent, name);
    // An initdb that still runs outlived its parent or belongs to a concurrent start; it ends within seconds.
    while (processesIn(folder).length > 0) {
      if (clock.monotonic() > deadline) throw new Error(`another process has been preparing ${folder} for too long`);
      await sleep(clock, POLL_MS);
    }
    rmSync(folder, { recursive: true, force: true });
  }
}

const CREATE_ATTEMPTS = 3;

async function createCluster(cluster: string, options: ClusterOptions, attempt: number): Promise<void> {
  const { account } = options;
  const temporary = mkdtempSync(`${cluster}.new-`);
  try {
    if (account) chownSync(temporary, account.uid, account.gid);
    await runInitdb(temporary, options);
    renameSync(temporary, cluster);
    syncFolder(dirname(cluster));
  } catch (error) {
    const cleared = !existsSync(temporary);
    rmSync(temporary, { recursive: true, force: true });
    // A concurrent start may have been faster, then its cluster is used; or it removed our folder as a leftover.
    if (!isCluster(cluster) && !(cleared && attempt < CREATE_ATTEMPTS)) throw error;
  }
}

function runInitdb(folder: string, { binaries, account, durable }: ClusterOptions): Promise<void> {
  const args = ['-D', clusterArgument(folder), '-U', EMBEDDED_USER, '--auth=trust', '--encoding=UTF8', '--locale=C'];
  if (!durable) args.push('--no-sync');
  return new Promise((resolve, reject) => {
    const child = spawn(binaries.initdb, args, {
      ...account,
      cwd: folder,
      env: { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' },
      detached: true,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let output = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-2000);
    });
    child.on('error', (error) => reject(new Error(explainSpawn(error, account), { cause: error })));
    child.on('close', (code, signalName) => {
      if (code === 0) resolve();
      else reject(new Error(explainInitdb(output, signalName)));
    });
  });
}

/**
 * How a program that runs in the cluster's folder names it. The server's account may not be allowed to enter the folders
 * above, and no mode of theirs may be changed; the kernel's link to the working directory, which is set before the account
 * changes, needs no passage through them.
 */
export function clusterArgument(cluster: string): string {
  return process.platform === 'linux' ? '/proc/self/cwd' : cluster;
}

/** A reason a reader can act on, for a program that could not be run at all. */
export function explainSpawn(error: Error, account: Account | undefined): string {
  const code = (error as NodeJS.ErrnoException).code;
  if (account && (code === 'EPERM' || code === 'EINVAL')) {
    return `root may not start PostgreSQL as uid ${account.uid} here (${code}); run as an ordinary user or set DATABASE_URL`;
  }
  if (code === 'ENOENT') {
    return 'the embedded PostgreSQL cannot run here: it needs glibc 2.27 or newer and /bin/sh (Alpine has none of the former); set DATABASE_URL';
  }
  return `the embedded PostgreSQL cannot be run: ${error.message}`;
}

function explainInitdb(output: string, signalName: NodeJS.Signals | null): string {
  if (output.includes('could not look up effective user ID')) {
    return (
      `the user id ${process.geteuid?.()} has no entry in /etc/passwd, which PostgreSQL needs to create its folder; ` +
      'run as a user that has one, or set DATABASE_URL'
    );
  }
  return `initdb failed${signalName ? ` (${signalName})` : ''}: ${output.trim() || 'no output'}`;
}

function readVersion(cluster: string): string {
  try {
    return readFileSync(join(cluster, 'PG_VERSION'), 'utf8').trim();
  } catch (cause) {
    throw new Error(`${cluster} is not readable as the folder of a PostgreSQL cluster`, { cause });
  }
}

/** Restored copies and volume drivers leave owners and modes that PostgreSQL refuses. */
function claim(cluster: string, account: Account | undefined): void {
  const status = statSync(cluster);
  if (account && status.uid !== account.uid) chownAll(cluster, account);
  else if (!account && status.uid !== process.geteuid?.()) {
    throw new Error(`${cluster} belongs to uid ${status.uid}; start as that user`);
  }
  if ((status.mode & 0o7777) !== 0o700) chmodSync(cluster, 0o700);
}

function chownAll(folder: string, account: Account): void {
  lchownSync(folder, account.uid, account.gid);
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    lchownSync(join(entry.parentPath, entry.name), account.uid, account.gid);
  }
}

function syncFolder(folder: string): void {
  const descriptor = openSync(folder, 'r');
  fsyncSync(descriptor);
  closeSync(descriptor);
}
