/**
 * The owner of a journal or data folder, and whether that process still lives. On one machine the kernel knows: the
 * process id with its start time, so that a reused id is recognized. For a process that cannot be looked up (in
 * another container or machine on a shared folder, or without /proc) the file's time decides, which its owner renews.
 */

import { randomUUID } from 'node:crypto';
import {
  linkSync,
  readFileSync,
  readlinkSync,
  renameSync,
  statSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { type Clock, sleep } from '../base/clock.ts';

export interface Owner {
  pid: number;
  /** Start time in ticks since boot; null without /proc. */
  startTicks: string | null;
  /** Boot of the machine and namespace of process ids; what makes `pid` meaningful. */
  pidNamespace: string | null;
}

/** An owner that cannot be looked up and did not renew its file for this long is dead. */
const SILENT_MS = 15_000;
/** How often an owner must renew its file. */
export const RENEW_MS = 5_000;

export function thisProcess(): Owner {
  return { pid: process.pid, startTicks: startTicks(process.pid), pidNamespace: currentPidNamespace() };
}

export function writeOwner(path: string): void {
  writeFileSync(path, JSON.stringify(thisProcess()), { mode: 0o600 });
}

/** A file that was removed with its folder needs no renewal. */
export function renewOwner(path: string, clock: Clock): void {
  const seconds = clock.now() / 1000;
  try {
    utimesSync(path, seconds, seconds);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}

/** Whether the process that wrote the file lives. A file that is gone or not readable as an owner has none. */
export function ownerLives(path: string, clock: Clock): boolean {
  const owner = readOwner(path);
  return owner !== undefined && processLives(owner, () => statSync(path).mtimeMs, clock);
}

/** @param renewedAt wall time in ms at which it last showed that it lives */
export function processLives(owner: Owner, renewedAt: () => number, clock: Clock): boolean {
  if (canLookUp(owner)) return startTicks(owner.pid) === owner.startTicks;
  return clock.now() - renewedAt() < SILENT_MS;
}

function readOwner(path: string): Owner | undefined {
  try {
    const owner = JSON.parse(readFileSync(path, 'utf8')) as Owner;
    return typeof owner.pid === 'number' ? owner : undefined;
  } catch {
    return undefined;
  }
}

function canLookUp(owner: Owner): boolean {
  return owner.pidNamespace !== null && owner.startTicks !== null && owner.pidNamespace === currentPidNamespace();
}

function currentPidNamespace(): string | null {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return `${boot} ${readlinkSync('/proc/self/ns/pid')}`;
  } catch {
    return null;
  }
}

/** null for a process that is gone or only waits to be reaped. */
function startTicks(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The command's name may hold spaces and parentheses; the state follows the last one.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const [state] = fields;
    return state === 'Z' || state === 'X' ? null : (fields[19] ?? null);
  } catch {
    return null;
  }
}

interface FolderLock {
  release(): void;
}

/**
 * Makes this process (with its workers) the only gateway on a data folder; throws an Error that names the other one when
 * it lives. A lock that cannot be looked up is waited for until it is silent for 15 s.
 */
export async function lockDataFolder(dataDir: string, clock: Clock): Promise<FolderLock> {
  const path = join(dataDir, 'gateway.lock');
  const ownPath = join(dataDir, `gateway.lock.${randomUUID()}`);
  writeOwner(ownPath);
  try {
    while (!tryLink(ownPath, path)) {
      const other = readOwner(path);
      if (other === undefined || !ownerLives(path, clock)) {
        removeStale(path, other);
        continue;
      }
      if (canLookUp(other)) throw lockedBy(dataDir, other);
      const silentAt = statSync(path).mtimeMs + SILENT_MS;
      await sleep(clock, RENEW_MS);
      if (statSync(path).mtimeMs + SILENT_MS > silentAt) throw lockedBy(dataDir, other);
    }
  } finally {
    unlinkSync(ownPath);
  }
  const timer = clock.timer(RENEW_MS, () => {
    renewOwner(path, clock);
    timer.refresh();
  });
  return {
    release() {
      timer.cancel();
      unlinkSync(path);
    },
  };
}

function tryLink(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

/** Of two that find the same dead owner, one must not remove the other's fresh lock. */
function removeStale(path: string, judged: Owner | undefined): void {
  const movedPath = `${path}.${randomUUID()}`;
  try {
    renameSync(path, movedPath);
  } catch {
    return;
  }
  const moved = readOwner(movedPath);
  if (moved !== undefined && (moved.pid !== judged?.pid || moved.startTicks !== judged.startTicks))
    tryLink(movedPath, path);
  unlinkSync(movedPath);
}

function lockedBy(dataDir: string, other: Owner): Error {
  return new Error(
    `another gateway (process ${other.pid}) runs on the data folder ${dataDir}; stop it, or give this one a folder of its own`,
  );
}
