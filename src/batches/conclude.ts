/** Moves a batch to its next state when its items allow it. */
import { GatewayError } from '../base/errors.ts';
import type { Queryable } from '../storage/database.ts';
import { type Batch, isTerminal, nextState } from './batch.ts';
import * as items from './items.sql.ts';
import { insertPlan, mayRunNatively } from './native/index.ts';
import { CANCELLED, EXPIRED, itemErrorOf } from './results/result.ts';
import type { RunParts } from './running/run.ts';
import * as store from './store.ts';

/** `over`: the batch is final or deleted. Otherwise the milliseconds until the next check. */
type Conclusion = 'over' | { lookAfterMs: number; isCancelling: boolean };

const SOON_MS = 1_000;

interface Ending {
  /** In the transaction that makes a batch final. */
  ended(tx: Queryable, id: string): Promise<void>;
}

type BeginParts = Pick<RunParts, 'database' | 'clock' | 'callerOfKey' | 'inference'> & Ending;

/** Begins a batch that no process has worked on yet. Returns its current state. */
export async function begin(parts: BeginParts, id: string): Promise<Batch | undefined> {
  const { database, clock, callerOfKey, inference, ended } = parts;
  const found = await store.findBatch(database, id);
  if (found?.state !== 'validating') return found;
  const unusable = await problemOf(found.keyHash, callerOfKey);
  return database.transaction(async (tx) => {
    const batch = await store.findBatch(tx, id, true);
    const state = batch && nextState(batch.state, unusable === undefined ? 'start' : 'unrunnable');
    if (batch === undefined || state === undefined) return batch;
    const at = new Date(clock.now());
    await store.changeState(tx, id, {
      ...{ state, at },
      ...(unusable !== undefined && { error: `the key of the batch: ${unusable.message}` }),
    });
    if (unusable !== undefined) await items.failOpenItems(tx, id, itemErrorOf(unusable));
    if (state === 'in_progress' && mayRunNatively(batch, inference)) await insertPlan(tx, id);
    if (unusable !== undefined) await ended(tx, id);
    return { ...batch, state };
  });
}

/** Why the key of a batch cannot pay for it; undefined if it can. */
async function problemOf(keyHash: string, callerOfKey: RunParts['callerOfKey']): Promise<GatewayError | undefined> {
  try {
    await callerOfKey(keyHash);
    return undefined;
  } catch (error) {
    if (error instanceof GatewayError && error.type === 'authentication') return error;
    throw error;
  }
}

export async function conclude(
  { database, clock, claimTime, ended }: Pick<RunParts, 'database' | 'clock' | 'claimTime'> & Ending,
  id: string,
): Promise<Conclusion> {
  const found = await database.transaction((tx) =>
    step(tx, id, { now: new Date(clock.now()), claims: new Date(claimTime.now()) }, ended),
  );
  if (found !== 'finalizing') return found;
  // Of many items it takes a moment, during which the state shows.
  const usage = await items.sumUsage(database, id);
  return database.transaction(async (tx) => {
    const batch = await store.findBatch(tx, id, true);
    const state = batch && nextState(batch.state, 'closed');
    if (state === undefined) {
      const isCancelling = batch?.state === 'cancelling';
      return isCancelling ? { lookAfterMs: SOON_MS, isCancelling } : 'over';
    }
    await store.changeState(tx, id, { state, at: new Date(clock.now()), usage });
    await ended(tx, id);
    return 'over';
  });
}

/** @param times the time, and the one by which claims have ended */
async function step(
  tx: Queryable,
  id: string,
  { now, claims }: { now: Date; claims: Date },
  ended: Ending['ended'],
): Promise<Conclusion | 'finalizing'> {
  const batch = await store.findBatch(tx, id, true);
  if (batch === undefined || isTerminal(batch.state)) return 'over';
  if (batch.state === 'finalizing') return 'finalizing';
  const open = await items.openItems(tx, id, claims);
  if (batch.completed + batch.failed === batch.total && batch.state === 'in_progress') {
    await store.changeState(tx, id, { state: nextState(batch.state, 'ran')!, at: now });
    return 'finalizing';
  }
  const isCancelled = batch.state === 'cancelling';
  const after = (time: Date | null) => ({ lookAfterMs: until(time, now), isCancelling: isCancelled });
  if (!isCancelled && batch.expiresAt > now) return after(open.freeAt);
  // What is running is paid for, so its results are kept.
  if (open.claimsEndAt !== null) return after(open.claimsEndAt);
  await items.failOpenItems(tx, id, isCancelled ? CANCELLED : EXPIRED);
  await store.changeState(tx, id, {
    state: nextState(batch.state, isCancelled ? 'stopped' : 'overdue')!,
    at: now,
    usage: await items.sumUsage(tx, id),
  });
  await ended(tx, id);
  return 'over';
}

function until(time: Date | null, now: Date): number {
  return time === null ? SOON_MS : Math.max(SOON_MS, time.getTime() - now.getTime());
}
