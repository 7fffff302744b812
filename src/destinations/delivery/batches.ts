/**
 * Durable delivery: records wait in the database, a job delivers each batch, and another process takes over when one
 * dies. At least once, for a day.
 */

import type { Clock } from '../../base/clock.ts';
import type { Problem } from '../../base/delivery-queue.ts';
import { uuidv7 } from '../../base/ids.ts';
import type { Log } from '../../base/log.ts';
import type { JobKind, Jobs } from '../../jobs/index.ts';
import type { Sealing } from '../../sealing/index.ts';
import type { Database } from '../../storage/database.ts';
import type { ActiveDestination } from '../active.ts';
import type { GenerationRecord } from '../record.ts';
import { openBatch, sealBatch } from '../sealed.ts';
import * as store from '../store.ts';
import { type SendParts, sendRecords } from './send.ts';
import type { States } from './state.ts';

interface BatchParts extends SendParts {
  database: Database;
  clock: Clock;
  log: Log;
  jobs: Pick<Jobs, 'send'>;
  states: States;
  sealing: Sealing;
  /** Undefined: the destination does not get any records now. */
  target(id: string): Promise<ActiveDestination | undefined>;
}

const AT_ONCE = 4;
const EXPIRE_SECONDS = 120;
/** Longest wait of a record. */
const LONGEST_MS = 24 * 3_600_000;
const RETRY_MS = 1_000;
const RETRY_MOST_MS = 600_000;
/** Bytes that wait for one destination. */
const MOST_WAITING_BYTES = 64 * 1024 * 1024;
const SWEEP_MS = 300_000;
/** A batch that is overdue for this long has lost its job. */
const OVERDUE_MS = 300_000;

interface BatchJob {
  id?: string;
}

export interface DurableDelivery {
  readonly kinds: readonly JobKind<BatchJob>[];
  /** Stores records; a job delivers them. */
  store(destinationId: string, records: readonly GenerationRecord[]): Promise<Problem | undefined>;
}

export function durableDelivery(parts: BatchParts): DurableDelivery {
  const { database, clock, jobs, sealing } = parts;
  const deliver: JobKind<BatchJob> = {
    name: 'destinations.deliver',
    runs: 'many',
    concurrency: AT_ONCE,
    expireSeconds: EXPIRE_SECONDS,
    pollSeconds: 1,
    async run({ data: { id }, signal }) {
      if (id !== undefined) await attempt(id, signal, parts, deliver);
    },
  };
  const sweep: JobKind<BatchJob> = {
    name: 'destinations.sweep',
    runs: 'one',
    retries: 0,
    everyMs: SWEEP_MS,
    async run() {
      for (const id of await store.overdueBatches(database, new Date(clock.now() - OVERDUE_MS))) {
        await jobs.send(deliver, { id });
      }
    },
  };
  return {
    kinds: [deliver, sweep],
    async store(destinationId, records) {
      const createdAt = new Date(clock.now());
      const id = uuidv7(createdAt.getTime());
      const batch = {
        ...{ id, destinationId, createdAt, attempts: 0, recordCount: records.length },
        sealed: await sealBatch(sealing, id, JSON.stringify(records)),
      };
      const stored = await database.transaction(async (tx) => {
        if (!(await store.insertBatch(tx, batch, MOST_WAITING_BYTES))) return false;
        await jobs.send(deliver, { id: batch.id }, { tx });
        return true;
      });
      return stored ? undefined : { message: 'too many records wait for the destination', outcome: 'refused' };
    },
  };
}

async function recordsOf(
  { id, sealed, records }: { id: string; sealed: Buffer | null; records: string | null },
  { sealing }: BatchParts,
): Promise<GenerationRecord[]> {
  return JSON.parse(
    sealed === null ? (records ?? '[]') : await openBatch(sealing, { id, sealed }),
  ) as GenerationRecord[];
}

const NOTHING: Awaited<ReturnType<typeof sendRecords>> = { refused: 0, reason: '' };

async function attempt(id: string, signal: AbortSignal, parts: BatchParts, kind: JobKind<BatchJob>): Promise<void> {
  const { database, clock, states } = parts;
  const batch = await store.findBatch(database, id);
  if (batch === undefined) return;
  const { destinationId, recordCount } = batch;
  const target = await parts.target(destinationId);
  if (target === undefined) return end('the destination was disabled before these records were delivered');
  const records = target.wanted(await recordsOf(batch, parts));
  const now = clock.now();
  const { problem, refused, reason } =
    records.length === 0 ? NOTHING : await sendRecords(parts, target, records, now, signal);
  // Not a failure of the destination: the job starts again elsewhere.
  if (problem?.outcome === 'cancelled') throw new Error(problem.message);
  if (problem === undefined) {
    if (await store.removeBatch(database, id)) {
      if (refused > 0) states.drop(destinationId, refused, reason);
      if (refused < records.length) states.delivered(destinationId, records.length - refused);
    }
    return;
  }
  if (now - batch.createdAt.getTime() > LONGEST_MS) return end(problem.message);
  states.failed(destinationId, problem.message);
  const pauseMs = Math.max(problem.retryAfterMs ?? 0, Math.min(RETRY_MS * 2 ** batch.attempts, RETRY_MOST_MS));
  await database.transaction(async (tx) => {
    if (!(await store.postponeBatch(tx, id, new Date(now + pauseMs)))) return;
    await parts.jobs.send(kind, { id }, { tx, afterSeconds: Math.ceil(pauseMs / 1_000) });
  });

  async function end(message: string): Promise<void> {
    if (await store.removeBatch(database, id)) states.drop(destinationId, recordCount, message);
  }
}
