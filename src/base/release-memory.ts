/**
 * What V8 does to save memory at the wrong moments, done at the right ones.
 *
 * Starting leaves behind a fifth of the process, which V8 keeps until the heap has doubled. Later on, whenever a busy
 * process falls quiet for some seconds, V8 collects to save memory, and drops the shapes of objects of which none lives just
 * then. With them goes all code that was compiled for them: the next ten thousand requests cost twice as much. So memory
 * is given back shortly after the start, and when nobody has asked for anything for some minutes, not in between.
 *
 * A busy process it collects whenever what has grown old is a fifth more than what was left the last time. Rows that wait for
 * the database grow old and are garbage a moment later, so that comes to a collection each half second, most of it on other
 * threads, where V8 does not count it: a tenth of what a small request costs. It waits for twice as much as was left instead.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Clock } from './clock.ts';

/** Who asked as soon as the gateway was ready has been answered by then. */
const AFTER_START_MS = 2_000;
const CHECK_MS = 60_000;
const QUIET_CHECKS = 10;

/** How much this process is in use. */
export interface Use {
  /** Nobody would be kept waiting by a collection of a tenth of a second. */
  readonly quiet: boolean;
  /** Requests to models that have begun so far. */
  readonly begun: number;
}

/** @param collect gives back what can be given back */
export function releaseMemory(clock: Clock, use: Use, collect: () => void = collectAll): void {
  clock.timer(AFTER_START_MS, () => {
    // Who is in use by now grows anyway, and has compiled what would be dropped.
    if (use.quiet) collect();
    leaveItToUs();
    let known = 0;
    let quietChecks = 0;
    const check = clock.timer(CHECK_MS, () => {
      check.refresh();
      if (use.begun !== known) {
        known = use.begun;
        quietChecks = 0;
      } else if (known > 0 && ++quietChecks === QUIET_CHECKS) {
        if (use.quiet) collect();
        else quietChecks -= 1;
      }
    });
  });
}

function leaveItToUs(): void {
  setFlagsFromString('--memory-reducer-gc-count=0');
  setFlagsFromString('--heap-growing-percent=200');
  // Code that is kept for the next start when the process ends is used under the same flags only.
  process.on('exit', () => {
    setFlagsFromString('--memory-reducer-gc-count=2');
    setFlagsFromString('--heap-growing-percent=0');
  });
}

type Collect = (options: { type: 'major'; flavor: 'last-resort' }) => void;

function collectAll(): void {
  // The one way to V8's collector without a flag on the command line. The flag goes again, as kept code is not used otherwise.
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as Collect;
  setFlagsFromString('--no-expose-gc');
  collect({ type: 'major', flavor: 'last-resort' });
}
