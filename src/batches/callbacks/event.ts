/** What the callback of a batch says. */
import type { CallbackEvent, CallbackSubjects } from '../../callbacks/index.ts';
import type { Database } from '../../storage/database.ts';
import { type Batch, batchReply, isTerminal, wireId } from '../batch.ts';
import { findBatch } from '../store.ts';
import { BATCH_CALLBACKS, forgottenCallbacks } from './store.ts';

export function batchSubjects(database: Database): CallbackSubjects {
  return {
    noun: 'batch',
    job: 'batches.callback',
    table: BATCH_CALLBACKS,
    async eventOf(id) {
      const batch = await findBatch(database, id);
      return batch !== undefined && isTerminal(batch.state) ? eventOf(batch) : undefined;
    },
    forgotten: (before, at) => forgottenCallbacks(database, before, at),
  };
}

function eventOf(batch: Batch): CallbackEvent {
  const id = `evt_${batch.id.replaceAll('-', '')}`;
  const type = `batch.${batch.state}`;
  const data = { ...batchReply(batch), results: null };
  return {
    ...{ id, type, subject: wireId(batch.id), workspaceId: batch.workspaceId, endedAt: batch.finalizedAt! },
    body: JSON.stringify({ id, object: 'event', type, created_at: data.finalized_at, data }),
  };
}
