/**
 * The end of a turn of the event loop: everything that was ready to be read has been read. What many requests have to do
 * then, be it a write to the journal or to a client, is done for one behind the other, which costs less than each in
 * between the reads of others.
 */

/** Calls `run` when this turn ends. */
export type EndOfTurn = (run: () => void) => void;

/** As setImmediate, with one call of it for all that is to be done at the end of one turn, in order. What is run must not throw. */
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
