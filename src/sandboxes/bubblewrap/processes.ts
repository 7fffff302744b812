/** Finds and ends processes of this machine, by facts that, unlike their ids, are not reused. */
import { readdirSync, readFileSync } from 'node:fs';
import { type Clock, sleep } from '../../base/clock.ts';

const POLL_MS = 5;

/** When a process started, in ticks of the kernel; undefined if it is gone or only waits to be reaped. */
function startOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The program name is in parentheses and may contain anything.
    const [state, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return state === 'Z' || state === 'X' ? undefined : fields[18];
  } catch {
    return undefined;
  }
}

/** Resolves when the process that has this id now is gone, or after `mostMs`. */
export async function gone(pid: number, clock: Clock, mostMs: number): Promise<void> {
  const start = startOf(pid);
  const until = clock.monotonic() + mostMs;
  while (start !== undefined && startOf(pid) === start && clock.monotonic() < until) await sleep(clock, POLL_MS);
}

/** The processes of `bwrap` whose command lines name a path below this folder. */
export function bubblewrapsOf(folder: string): number[] {
  const below = `${folder}/`;
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    const [program = '', ...args] = commandLine(name).split('\0');
    return /(?:^|\/)bwrap$/.test(program) && args.some((arg) => arg.startsWith(below)) ? [Number(name)] : [];
  });
}

function commandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1');
  } catch {
    return '';
  }
}

/** Does nothing if it is gone. */
export function kill(pid: number, signal: NodeJS.Signals = 'SIGKILL'): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** In the order in which they were made or adopted. */
export function childrenOf(pid: number): number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

/** A process with all that descend from it. */
export function treeOf(pid: number): number[] {
  const found = [pid];
  for (const each of found) found.push(...childrenOf(each));
  return found;
}

const STANDARD = 2;
/** O_CLOEXEC. */
const CLOSES = 0o2000000;

/** Descriptors of this process, apart from the standard ones, that every child would have. Node's own are not among them. */
export function inheritedDescriptors(): number[] {
  if (process.platform !== 'linux') return [];
  return readdirSync('/proc/self/fd').flatMap((name) => {
    try {
      const [, flags = '0'] = /^flags:\s*(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${name}`, 'utf8')) ?? [];
      return Number(name) > STANDARD && (Number.parseInt(flags, 8) & CLOSES) === 0 ? [Number(name)] : [];
    } catch {
      return [];
    }
  });
}
