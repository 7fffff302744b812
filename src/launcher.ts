/**
 * Whether what started the gateway is still there. `npm` and `npx` pass no signal on, and a terminal that closes says so by
 * SIGHUP, the same signal that asks for a reload. In both cases a gateway that stays would hold its port and data folder
 * with nobody to stop it.
 */
import { closeSync, openSync, readFileSync } from 'node:fs';
import type { Clock, Timer } from './base/clock.ts';

/** How often the chain of parents is looked at. */
const LOOK_MS = 1_000;
/** npm, the shell that it starts, the launcher of the package. */
const MOST_PARENTS = 4;

/** The terminal that this process was started on. Output that goes elsewhere altogether, as under `nohup`, leaves none. */
export class Terminal {
  readonly wasThere: boolean;

  constructor() {
    const { stdin, stdout, stderr } = process;
    this.wasThere = [stdin, stdout, stderr].some(({ isTTY }) => isTTY) && this.isThere;
  }

  get isThere(): boolean {
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
  const timer: Timer = clock.timer(LOOK_MS, () => {
    if (links.every(({ pid, parent }) => parentOf(pid) === parent)) timer.refresh();
    else onGone();
  });
}

interface Link {
  pid: number;
  parent: number;
}

/** From this process up to npm; where the system does not tell what the parents are, the first link alone. */
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

/** Undefined where the system does not tell it, or there is no such process. */
function parentOf(pid: number): number | undefined {
  if (pid === process.pid) return process.ppid;
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The name of the program stands in parentheses and may hold anything.
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
  } catch {
    return undefined;
  }
}
