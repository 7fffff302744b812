/** Finds, cancels and deletes batches for a client, whatever API it uses. */
import type { Caller } from '../access/index.ts';
import { authorOf, changeAs } from '../audit/index.ts';
import { GatewayError, orNotFound } from '../base/errors.ts';
import type { Exchange } from '../http/operation.ts';
import {
  type Batch,
  type BatchShape,
  type BatchState,
  batchReply,
  isTerminal,
  nextState,
  resourceOf,
} from './batch.ts';
import { deleteItems } from './items.sql.ts';
import * as store from './store.ts';
import type { SubmitParts } from './submission/submit.ts';

const BATCH = 'batch with this id in the workspace of the key';

/**
 * @param id UUID; undefined if the client's text is not an id
 * @param shape of the API that the batch must have been submitted with; by default any
 * @throws GatewayError 404, also for the batch of another workspace
 */
export async function ownBatch(
  { caller }: Exchange<Caller>,
  id: string | undefined,
  { database }: Pick<SubmitParts, 'database'>,
  shape?: BatchShape,
): Promise<Batch> {
  const batch = id === undefined ? undefined : await store.findBatch(database, id);
  const isOwn = batch?.workspaceId === caller.workspaceId && (shape === undefined || batch.shape === shape);
  return orNotFound(isOwn ? batch : undefined, BATCH);
}

/**
 * Cancels a batch: items that have not begun do not run. Returns the batch after the change.
 * @param tooLate states in which the batch stays as it is
 * @throws GatewayError 409 in other later states
 */
export function cancelBatch(
  exchange: Exchange<Caller>,
  id: string,
  parts: SubmitParts,
  tooLate: readonly BatchState[] = [],
): Promise<Batch> {
  return changeAs(authorOf(exchange), parts, async (tx, changed) => {
    const before = orNotFound(await store.findBatch(tx, id, true), BATCH);
    const state = tooLate.includes(before.state) ? before.state : nextState(before.state, 'cancel');
    if (state === undefined) throw conflict(`the batch is ${before.state} and cannot be cancelled`);
    if (state === before.state) return before;
    const cancelledAt = new Date(parts.clock.now());
    await store.changeState(tx, before.id, { state, at: cancelledAt });
    await parts.runner.announce(tx, before.id);
    const after = { ...before, state, cancelledAt };
    await changed({
      action: 'batch.cancelled',
      ...resourceOf(after),
      before: batchReply(before),
      after: batchReply(after),
    });
    return after;
  });
}

/** Deletes a batch. Returns what providers still have of its data. @throws GatewayError 409 before a final state */
export function deleteBatch(
  exchange: Exchange<Caller>,
  id: string,
  parts: SubmitParts,
): Promise<store.UpstreamData | undefined> {
  return changeAs(authorOf(exchange), parts, async (tx, changed) => {
    const batch = orNotFound(await store.findBatch(tx, id, true), BATCH);
    if (!isTerminal(batch.state)) throw conflict(`the batch is ${batch.state}; cancel it first`);
    const upstream = await store.findUpstream(tx, batch.id);
    await store.deleteBatch(tx, batch.id);
    await deleteItems(tx, batch.id);
    await changed({ action: 'batch.deleted', ...resourceOf(batch), before: batchReply(batch) });
    return upstream;
  });
}

/** 409, which clients need not retry. */
export function conflict(message: string): GatewayError {
  return new GatewayError('invalid_request', message, { status: 409, headers: { 'x-should-retry': 'false' } });
}
