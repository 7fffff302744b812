/**
 * The end of a turn of the event loop: everything that was ready to be read has been read. Work of many requests then runs
 * back to back, stage by stage, which costs less than interleaving it with reads: the code of a stage stays in the
 * processor's caches.
 */

/**
 * `accept`: requests that have arrived completely; `answer`: answers of upstreams that have; `write`: journal records and
 * output to clients, including those that the other stages add.
 */
type Stage = 'accept' | 'answer' | 'write';

/** Calls `run` when this turn ends; default stage `write`. */
export type EndOfTurn = (run: () => void, stage?: Stage) => void;

/** Like setImmediate, but with one call for all work at the end of a turn, in order within its stage. `run` must not throw. */
export function endOfTurn(schedule: (run: () => void) => void = setImmediate): EndOfTurn {
  let waiting: Record<Stage, (() => void)[]> = { accept: [], answer: [], write: [] };
  let scheduled = false;
  const end = () => {
    const { accept, answer } = waiting;
    waiting = { accept: [], answer: [], write: waiting.write };
    for (const run of accept) run();
    for (const run of answer) run();
    const { write } = waiting;
    waiting.write = [];
    scheduled = waiting.accept.length + waiting.answer.length > 0;
    if (scheduled) schedule(end);
    for (const run of write) run();
  };
  return (run, stage = 'write') => {
    waiting[stage].push(run);
    if (scheduled) return;
    scheduled = true;
    schedule(end);
  };
}
