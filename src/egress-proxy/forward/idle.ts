/** Ends connections that are no longer used. */
import type { Duplex } from 'node:stream';
import type { Clock } from '../../base/clock.ts';
import { IDLE_MS } from './context.ts';

/** Destroys both ends when nothing has arrived at either for a while. Adds listeners for data, so both must be read. */
export function endWhenIdle(clock: Clock, ends: readonly Duplex[]): void {
  const timer = clock.timer(IDLE_MS, () => {
    for (const end of ends) end.destroy();
  });
  for (const end of ends) {
    end.on('data', () => timer.refresh());
    end.once('close', () => timer.cancel());
  }
}
