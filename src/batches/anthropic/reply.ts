/** Batches and results as Anthropic's SDKs expect them. */
import { GatewayError } from '../../base/errors.ts';
import { messages } from '../../formats/index.ts';
import { type Batch, isTerminal, storedId, wireId } from '../batch.ts';
import type { StoredResult } from '../items.sql.ts';
import { CANCELLED, EXPIRED } from '../results/result.ts';

const ID_PREFIX = 'msgbatch_';

/** The wire id of a message batch. */
export function messageBatchId(id: string): string {
  return wireId(id, ID_PREFIX);
}

/** The UUID of a wire id; undefined if the text is not the id of a message batch. */
export function storedMessageBatchId(text: string): string | undefined {
  return storedId(text, ID_PREFIX);
}

/** @param resultsUrl where the results are, once there are some */
export function messageBatchReply(batch: Batch, resultsUrl: (id: string) => string) {
  const id = messageBatchId(batch.id);
  const hasEnded = isTerminal(batch.state);
  return {
    id,
    type: 'message_batch',
    processing_status: hasEnded ? 'ended' : batch.state === 'cancelling' ? 'canceling' : 'in_progress',
    request_counts: requestCounts(batch, hasEnded),
    created_at: batch.createdAt.toISOString(),
    expires_at: batch.expiresAt.toISOString(),
    ended_at: timeOf(batch.finalizedAt),
    cancel_initiated_at: timeOf(batch.cancelledAt),
    archived_at: timeOf(batch.purgedAt),
    results_url: hasEnded && batch.purgedAt === null ? resultsUrl(id) : null,
  };
}

/** All requests count as processing until the batch has ended. */
function requestCounts({ total, completed, failed, cancelled, expired }: Batch, hasEnded: boolean) {
  return hasEnded
    ? { processing: 0, succeeded: completed, errored: failed - cancelled - expired, canceled: cancelled, expired }
    : { processing: total, succeeded: 0, errored: 0, canceled: 0, expired: 0 };
}

function timeOf(time: Date | null): string | null {
  return time === null ? null : time.toISOString();
}

/** JSON of one result. The message is the bytes that `/messages` answered with. */
export function messageResultJson(_batchId: string, result: StoredResult): Buffer {
  const head = `{"custom_id":${JSON.stringify(result.customId)},"result":`;
  if (result.response === null) return Buffer.from(`${head}${JSON.stringify(failureOf(result))}}`);
  return Buffer.concat([Buffer.from(`${head}{"type":"succeeded","message":`), result.response, Buffer.from('}}')]);
}

function failureOf({ error, requestId }: StoredResult) {
  if (error!.type === CANCELLED.type) return { type: 'canceled' };
  if (error!.type === EXPIRED.type) return { type: 'expired' };
  const failure = new GatewayError(error!.error_type as GatewayError['type'], error!.message);
  return { type: 'errored', error: messages.encodeFailure(failure, { generationId: requestId }) };
}
