/**
 * Which PostgreSQL processes work on a cluster, from /proc (Linux; elsewhere nothing is seen and PostgreSQL's own lock
 * file decides). A process is recognized by its program and its working directory, never by a number in a file: numbers
 * are reused, and a killed process that its parent does not reap still answers to `kill(pid, 0)`. Zombies have no working
 * directory, so they do not count.
 */
import { readdirSync, readlinkSync, statSync } from 'node:fs';
import { basename } from 'node:path';

/** Ids of all live `postgres` and `initdb` processes whose working directory is `folder`, whatever path leads there. */
export function processesIn(folder: string): number[] {
  const wanted = statSync(folder, { throwIfNoEntry: false });
  if (process.platform !== 'linux' || !wanted) return [];
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const program = basename(readlinkSync(`/proc/${name}/exe`)).replace(' (deleted)', '');
      if (program !== 'postgres' && program !== 'initdb') return [];
      const { dev, ino } = statSync(`/proc/${name}/cwd`);
      return dev === wanted.dev && ino === wanted.ino ? [Number(name)] : [];
    } catch {
      // Gone, a zombie, or another user's.
      return [];
    }
  });
}

/** Sends a signal; false when the process is gone. */
export function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, name);
  } catch {
    return false;
  }
}
