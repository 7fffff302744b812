/** The job of native batches: each run is one step of one of them, and sends the next. */
import { uuidv7 } from '../../base/ids.ts';
import type { JobKind, Jobs } from '../../jobs/index.ts';
import type { Queryable } from '../../storage/database.ts';
import { NativeFollower } from './follow.ts';
import type { NativePart } from './part.ts';
import * as sql from './parts.sql.ts';
import type { NativeParts } from './plan.ts';

/** Native batches that one process works on at the same time. */
const AT_ONCE = 4;
/** Longer than the longest upload or download. */
const LONGEST_SECONDS = 3_600;
const CLAIM_MS = 10_000;
const RENEW_MS = 2_500;
const BUSY_SECONDS = 2;
/** A native batch that no process has worked on for this time has lost its job. */
const FORGOTTEN_MS = 600_000;

interface NativeJob {
  id?: string;
  turn?: number;
}

export interface NativeJobs {
  kind: JobKind<NativeJob>;
  /** Starts the first step of a new part when `tx` commits. */
  start(tx: Queryable, partId: string): Promise<void>;
  /** Wakes up the jobs of a batch's parts. */
  wake(batchId: string): Promise<void>;
  /** Continues parts whose job was lost. */
  wakeForgotten(): Promise<void>;
}

export function nativeJobs(
  parts: NativeParts,
  jobs: Pick<Jobs, 'send'>,
  ended: (tx: Queryable, batchId: string) => Promise<void>,
): NativeJobs {
  const { database, clock, claimTime } = parts;
  const follower = new NativeFollower(parts, ended);
  const kind: JobKind<NativeJob> = {
    name: 'batches.native',
    runs: 'many',
    concurrency: AT_ONCE,
    expireSeconds: LONGEST_SECONDS,
    pollSeconds: 1,
    async run({ data, signal }) {
      const { id, turn } = data;
      if (id === undefined || turn === undefined) return;
      const claim = uuidv7(clock.now());
      const taken = await sql.claimPart(database, { id, turn, ...claimed(claim) });
      if (taken === undefined) return;
      if (taken === 'busy') {
        await jobs.send(kind, data, { afterSeconds: BUSY_SECONDS });
        return;
      }
      await step(taken, claim, signal);
    },
  };
  const claimed = (claim: string) => ({
    claim,
    now: new Date(claimTime.now()),
    until: new Date(clock.now() + CLAIM_MS),
  });

  async function step(part: NativePart, claim: string, signal: AbortSignal): Promise<void> {
    const lost = new AbortController();
    const timer = clock.timer(RENEW_MS, () => {
      timer.refresh();
      // While the database is away nothing can be renewed; the next statement of the step finds out.
      sql.renewPart(database, part.id, claimed(claim)).then(
        (isOurs) => {
          if (!isOurs) lost.abort(new Error(`native batch ${part.id} was taken over`));
        },
        () => {},
      );
    });
    try {
      const next = await follower.step(part, claim, AbortSignal.any([signal, lost.signal]));
      if (next === 'over') return;
      await database.transaction(async (tx) => {
        const turn = await sql.passOn(tx, part.id, claim);
        if (turn === undefined) return;
        const afterSeconds = Math.ceil(next / 1000);
        await jobs.send(kind, { id: part.id, turn }, { tx, ...(afterSeconds > 0 && { afterSeconds }) });
      });
    } catch (error) {
      await sql.leavePart(database, part.id, claim).catch(() => {});
      throw error;
    } finally {
      timer.cancel();
    }
  }

  async function wakeBy(by: Parameters<typeof sql.wakeParts>[1]): Promise<void> {
    await database.transaction(async (tx) => {
      for (const part of await sql.wakeParts(tx, by)) await jobs.send(kind, part, { tx });
    });
  }

  return {
    kind,
    start: (tx, id) => jobs.send(kind, { id, turn: 0 }, { tx }),
    wake: (batchId) => wakeBy({ batchId }),
    async wakeForgotten() {
      await sql.removeOldPlans(database);
      await wakeBy({ seenBefore: new Date(clock.now() - FORGOTTEN_MS), at: new Date(clock.now()) });
    },
  };
}
