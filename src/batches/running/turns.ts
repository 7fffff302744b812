/**
 * Chooses the run that may begin the next item in a process. Workspaces take turns, however many batches each has: the
 * one with the fewest running items is next, and of several the one that has waited longest. Its batches take turns in
 * the same way.
 */
export interface TakesTurns {
  readonly workspaceId: string;
  /** Items that run at the moment. */
  readonly running: number;
  /** Whether it has an item that may begin. */
  readonly ready: boolean;
}

interface Workspace<Run> {
  readonly id: string;
  /** The one that has waited longest first. */
  readonly runs: Run[];
}

export class Turns<Run extends TakesTurns> {
  /** The one that has waited longest first. */
  readonly #workspaces: Workspace<Run>[] = [];
  readonly #most: number;
  readonly #reserved: number;

  /** @param most items that run at once; the last eighth of them is for workspaces with no running item */
  constructor(most: number) {
    this.#most = most;
    this.#reserved = Math.floor(most / 8);
  }

  add(run: Run): void {
    const workspace = this.#workspaces.find(({ id }) => id === run.workspaceId);
    if (workspace) workspace.runs.push(run);
    else this.#workspaces.push({ id: run.workspaceId, runs: [run] });
  }

  delete(run: Run): void {
    const at = this.#workspaces.findIndex(({ id }) => id === run.workspaceId);
    const runs = this.#workspaces[at]?.runs ?? [];
    if (runs.includes(run)) runs.splice(runs.indexOf(run), 1);
    if (at !== -1 && runs.length === 0) this.#workspaces.splice(at, 1);
  }

  /** All runs, those of the workspace that has waited longest first. */
  get runs(): readonly Run[] {
    return this.#workspaces.flatMap(({ runs }) => runs);
  }

  /** The run that may begin an item now; undefined if there is none. */
  next(): Run | undefined {
    let total = 0;
    let chosen: { run: Run; running: number } | undefined;
    for (const workspace of this.#workspaces) {
      const running = workspace.runs.reduce((sum, run) => sum + run.running, 0);
      total += running;
      if (chosen !== undefined && chosen.running <= running) continue;
      const run = fewestRunning(workspace.runs);
      if (run !== undefined) chosen = { run, running };
    }
    if (chosen === undefined) return undefined;
    return total < this.#most - (chosen.running === 0 ? 0 : this.#reserved) ? chosen.run : undefined;
  }

  /** The run has begun an item, so it goes after the others. */
  begun(run: Run): void {
    const workspace = this.#workspaces.find(({ id }) => id === run.workspaceId);
    if (workspace === undefined) return;
    toTheEnd(this.#workspaces, workspace);
    toTheEnd(workspace.runs, run);
  }
}

function fewestRunning<Run extends TakesTurns>(runs: readonly Run[]): Run | undefined {
  let chosen: Run | undefined;
  for (const run of runs) if (run.ready && (chosen === undefined || run.running < chosen.running)) chosen = run;
  return chosen;
}

function toTheEnd<T>(list: T[], member: T): void {
  list.splice(list.indexOf(member), 1);
  list.push(member);
}
