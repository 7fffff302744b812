/**
 * What V8 does to save memory at the wrong moment, done at the right one: once, shortly after the start.
 *
 * Starting leaves behind a fifth of the process, which V8 keeps until the heap has doubled. Later on, whenever a served
 * process falls quiet for some seconds, V8 collects to save memory, and drops the shapes of objects of which none lives just
 * then. With them goes all code that was compiled for them: the next ten thousand requests cost twice as much.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Clock } from './clock.ts';

/** Who asked as soon as the gateway was ready has been answered by then. */
const AFTER_MS = 2_000;

type Collect = (options: { type: 'major'; flavor: 'last-resort' }) => void;

/**
 * @param isQuiet whether nobody would be kept waiting by a collection of a tenth of a second. A gateway that is in use by
 * then has compiled what it would drop, and grows anyway.
 */
export function releaseMemory(clock: Clock, isQuiet: () => boolean): void {
  clock.timer(AFTER_MS, () => {
    if (isQuiet()) collectAll();
    setFlagsFromString('--memory-reducer-gc-count=0');
    // Code that is kept for the next start when the process ends is used under the same flags only.
    process.on('exit', () => setFlagsFromString('--memory-reducer-gc-count=2'));
  });
}

function collectAll(): void {
  // The one way to V8's collector without a flag on the command line. The flag goes again, as kept code is not used otherwise.
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as Collect;
  setFlagsFromString('--no-expose-gc');
  collect({ type: 'major', flavor: 'last-resort' });
}
