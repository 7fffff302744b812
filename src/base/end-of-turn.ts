/**
 * The end of a turn of the event loop: everything that was ready to be read has been read. Work of many requests then runs
 * back to back, stage by stage, which costs less than interleaving it with reads: the code of a stage stays in the
 * processor's caches.
 */

/**
 * `handle`: requests and answers that have arrived completely. `write`: journal records and output to clients, including
 * those that the first stage adds.
 */
type Stage = 'handle' | 'write';

/** Calls `run` when this turn ends; default stage `write`. */
export type EndOfTurn = (run: () => void, stage?: Stage) => void;

/** Like setImmediate, but with one call for all work at the end of a turn, in order within its stage. `run` must not throw. */
export function endOfTurn(schedule: (run: () => void) => void = setImmediate): EndOfTurn {
  let handling: (() => void)[] = [];
  let writing: (() => void)[] = [];
  let scheduled = false;
  const end = () => {
    const handles = handling;
    handling = [];
    for (const run of handles) run();
    const writes = writing;
    writing = [];
    scheduled = handling.length > 0;
    if (scheduled) schedule(end);
    for (const run of writes) run();
  };
  return (run, stage = 'write') => {
    if (stage === 'handle') handling.push(run);
    else writing.push(run);
    if (scheduled) return;
    scheduled = true;
    schedule(end);
  };
}
