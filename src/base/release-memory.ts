/**
 * Triggers V8's memory-reducing garbage collection when it is harmless: after the start, and after ten idle minutes.
 *
 * The start leaves garbage of a fifth of the process, which V8 keeps until the heap has doubled. Later, whenever a busy process
 * is idle for some seconds, V8 collects to save memory and drops object shapes without live objects, and with them all code
 * compiled for them: the next ten thousand requests then cost twice as much. So memory is released shortly after the start and
 * after some idle minutes, not in between.
 *
 * In a busy process V8 collects whenever the old generation has grown by a fifth. Rows that wait for the database get old and
 * are garbage a moment later, which would mean a collection every half second, mostly on other threads: a tenth of the cost of
 * a small request. So the old generation may double first.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Clock } from './clock.ts';

/** Requests that came as soon as the gateway was ready are answered by then. */
const AFTER_START_MS = 2_000;
const CHECK_MS = 60_000;
const QUIET_CHECKS = 10;

/** Load of this process. */
export interface Use {
  /** A collection of a tenth of a second would delay no request. */
  readonly quiet: boolean;
  /** Requests to models started so far. */
  readonly begun: number;
}

/** @param collect runs the collection */
export function releaseMemory(clock: Clock, use: Use, collect: () => void = collectAll): void {
  clock.timer(AFTER_START_MS, () => {
    // A process already in use grows anyway, and has compiled code that would be dropped.
    if (use.quiet) collect();
    disableMemoryReducer();
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

function disableMemoryReducer(): void {
  setFlagsFromString('--memory-reducer-gc-count=0');
  setFlagsFromString('--heap-growing-percent=200');
  // The compile cache written at exit is used only under the same flags.
  process.on('exit', () => {
    setFlagsFromString('--memory-reducer-gc-count=2');
    setFlagsFromString('--heap-growing-percent=0');
  });
}

type Collect = (options: { type: 'major'; flavor: 'last-resort' }) => void;

function collectAll(): void {
  // The only way to call V8's collector without a command-line flag. The flag is removed again so that the compile cache stays
  // valid.
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as Collect;
  setFlagsFromString('--no-expose-gc');
  collect({ type: 'major', flavor: 'last-resort' });
}
