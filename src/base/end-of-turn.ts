/**
 * The end of a turn of the event loop: everything that was ready to be read has been read. Work of many requests, such as
 * writes to the journal or to clients, then runs back to back, which costs less than interleaving it with reads.
 */

/** Calls `run` when this turn ends. */
export type EndOfTurn = (run: () => void) => void;

/** Like setImmediate, but with one call for all work at the end of a turn, in order. `run` must not throw. */
export function endOfTurn(schedule: (run: () => void) => void = setImmediate): EndOfTurn {
  let waiting: (() => void)[] = [];
  const end = () => {
    const runs = waiting;
    waiting = [];
    for (const run of runs) run();
  };
  return (run) => {
    if (waiting.push(run) === 1) schedule(end);
  };
}
