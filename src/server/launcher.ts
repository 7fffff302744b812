/**
 * Detects that the launcher of the gateway is gone. `npm` and `npx` forward no signal, and a terminal that closes sends
 * SIGHUP, which is also the signal for a reload. In both cases a gateway that kept running would hold its port and data
 * directory without anyone to stop it.
 */
import { closeSync, openSync, readFileSync } from 'node:fs';
import type { Clock, Timer } from '../base/clock.ts';

/** Interval for checking the chain of parent processes. */
const CHECK_MS = 1_000;
/** npm, the shell that it starts, the launcher of the package. */
const MOST_PARENTS = 4;

/** The terminal that this process was started on. None if all output goes elsewhere, as under `nohup`. */
export class Terminal {
  readonly wasAttached: boolean;

  constructor() {
    const { stdin, stdout, stderr } = process;
    this.wasAttached = [stdin, stdout, stderr].some(({ isTTY }) => isTTY) && this.isAttached;
  }

  get isAttached(): boolean {
    return hasTerminal();
  }
}

/** The kernel takes the controlling terminal away from every process of the session when it hangs up. */
function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'));
    return true;
  } catch {
    return false;
  }
}

/** Calls `onGone` once, when the `npm start` or `npx` that started this process is gone. */
export function watchNpm(environment: Readonly<Record<string, string | undefined>>, clock: Clock, onGone: () => void) {
  const event = environment['npm_lifecycle_event'];
  // Other scripts may put a gateway into the background on purpose.
  if (event !== 'start' && event !== 'npx') return;
  const links = linksToNpm();
  const timer: Timer = clock.timer(CHECK_MS, () => {
    if (links.every(({ pid, parent }) => parentOf(pid) === parent)) timer.refresh();
    else onGone();
  });
}

interface Link {
  pid: number;
  parent: number;
}

/** From this process up to npm; only the direct parent where the system does not expose others. */
function linksToNpm(): Link[] {
  const links: Link[] = [{ pid: process.pid, parent: process.ppid }];
  for (let pid = process.ppid; !isNpm(pid) && links.length < MOST_PARENTS; ) {
    const parent = parentOf(pid);
    if (parent === undefined || parent <= 1) return links.slice(0, 1);
    links.push({ pid, parent });
    pid = parent;
  }
  return links;
}

function isNpm(pid: number): boolean {
  try {
    return /\bnp[mx]\b/.test(readFileSync(`/proc/${pid}/cmdline`, 'utf8'));
  } catch {
    return false;
  }
}

/** Undefined if the system does not expose it, or the process does not exist. */
function parentOf(pid: number): number | undefined {
  if (pid === process.pid) return process.ppid;
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The program name is in parentheses and may contain anything.
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
  } catch {
    return undefined;
  }
}
