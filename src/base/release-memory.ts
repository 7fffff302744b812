/**
 * Gives back what starting has left behind, a fifth of the process: left alone, V8 keeps it until the heap has doubled.
 * Nothing else runs meanwhile, a tenth of a second perhaps, so it waits for a moment in which nobody is served.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Clock } from './clock.ts';

/** Who asked as soon as the gateway was ready has been answered by then. */
const AFTER_MS = 2_000;

type Collect = (options: { type: 'major'; flavor: 'last-resort' }) => void;

/** @param isQuiet whether nobody would be kept waiting */
export function releaseMemory(clock: Clock, isQuiet: () => boolean): void {
  const timer = clock.timer(AFTER_MS, () => {
    if (!isQuiet()) {
      timer.refresh();
      return;
    }
    // The one way to V8's collector without a flag on the command line. The flag goes again: compiled code that was kept
    // under other flags is not used.
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as Collect;
    setFlagsFromString('--no-expose-gc');
    collect({ type: 'major', flavor: 'last-resort' });
  });
}
