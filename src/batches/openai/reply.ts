/** A batch as OpenAI's clients know it. */

import type { IncomingHttpHeaders } from 'node:http';
import { unixSeconds } from '../../base/timestamp.ts';
import { shapeOf, wireFileId } from '../../files/index.ts';
import { type Batch, type BatchState, isTerminal, wireId } from '../batch.ts';
import type { BatchFiles } from './files.sql.ts';

/** True if the client that sent these headers is one of OpenAI's. */
export function isOpenaiClient(headers: IncomingHttpHeaders): boolean {
  return shapeOf(headers, {}) === 'openai';
}

const secondsOf = (time: Date | null) => time && unixSeconds(time);

/** @param files undefined for a batch without an input file */
export function openaiReply(batch: Batch, files: BatchFiles | undefined) {
  const status = shownState(batch, files);
  const { inProgressAt, finalizingAt, cancelledAt, finalizedAt, total, completed, failed } = batch;
  const endedAt = (state: BatchState) => (status === state ? secondsOf(files?.writtenAt ?? finalizedAt) : null);
  const fileId = (id: string | null | undefined) => (id ? wireFileId(id) : null);
  return {
    id: wireId(batch.id),
    object: 'batch',
    endpoint: batch.endpoint,
    ...(batch.model !== null && { model: batch.model }),
    errors: errorsOf(batch, files),
    input_file_id: fileId(files?.inputFileId),
    completion_window: '24h',
    status,
    output_file_id: fileId(files?.outputFileId),
    error_file_id: fileId(files?.errorFileId),
    created_at: secondsOf(batch.createdAt),
    in_progress_at: secondsOf(inProgressAt),
    expires_at: secondsOf(batch.expiresAt),
    finalizing_at: secondsOf(finalizingAt),
    completed_at: endedAt('completed'),
    failed_at: endedAt('failed'),
    expired_at: endedAt('expired'),
    cancelling_at: secondsOf(cancelledAt),
    cancelled_at: endedAt('cancelled'),
    request_counts: { total, completed, failed },
    usage: usageOf(batch),
    metadata: files?.metadata ?? null,
  };
}

const BEFORE: Partial<Record<BatchState, BatchState>> = { cancelled: 'cancelling', failed: 'validating' };

/** A batch is final when its results are in its files. */
function shownState({ state }: Batch, files: BatchFiles | undefined): BatchState {
  if (!isTerminal(state) || files === undefined || files.writtenAt !== null) return state;
  return BEFORE[state] ?? 'finalizing';
}

function errorsOf({ error }: Batch, files: BatchFiles | undefined) {
  const data =
    files?.errors ?? (error === null ? null : [{ code: 'authentication', line: null, message: error, param: null }]);
  return data && { object: 'list', data };
}

function usageOf({ usage }: Batch) {
  const [input, output] = [usage?.prompt_tokens ?? 0, usage?.completion_tokens ?? 0];
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: usage?.cached_tokens ?? 0 },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: usage?.reasoning_tokens ?? 0 },
    total_tokens: input + output,
  };
}
