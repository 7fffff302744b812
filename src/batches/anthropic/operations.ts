/** `/messages/batches`, as Anthropic's SDKs use it. */
import type { Caller } from '../../access/index.ts';
import { GatewayError, invalidField } from '../../base/errors.ts';
import { messages } from '../../formats/index.ts';
import { INFERENCE } from '../../http/access-rule.ts';
import { ok } from '../../http/contract.ts';
import type { Exchange, Operation } from '../../http/operation.ts';
import { publicUrl } from '../../http/public-url.ts';
import { type Batch, isTerminal } from '../batch.ts';
import { cancelBatch, conflict, deleteBatch, ownBatch } from '../change-batch.ts';
import { resultLines, sendStream } from '../results/lines.ts';
import { listBatches } from '../store.ts';
import { MAX_INPUT_BYTES, type SubmitParts, submit } from '../submission/submit.ts';
import { messageBatchId, messageBatchReply, messageResultJson, storedMessageBatchId } from './reply.ts';
import { messageItems, readRequests } from './requests.ts';
import * as schema from './schema.ts';

const { requestIdHeader, errorSchema } = messages.operation;

const common = {
  tag: 'Batches',
  access: INFERENCE,
  ...(requestIdHeader && { requestIdHeader }),
  ...(errorSchema && { errorSchema }),
  encodeError: (error: GatewayError, { requestId }: { requestId: string }) =>
    messages.encodeFailure(error, { generationId: requestId }),
} as const;

const one = { ...common, params: schema.MessageBatchParams } as const;

export function messageBatchOperations(parts: SubmitParts): Operation<Caller>[] {
  return [create(parts), list(parts), get(parts), results(parts), cancel(parts), remove(parts)];
}

function create(parts: SubmitParts): Operation<Caller> {
  return {
    ...common,
    id: 'createMessageBatch',
    method: 'POST',
    path: '/messages/batches',
    summary: 'Run many messages in the background (Anthropic Message Batches)',
    upload: { contentType: 'application/json', schema: schema.CreateMessageBatchBody, maxBytes: MAX_INPUT_BYTES },
    replies: ok('The batch, which is stored and will run', schema.MessageBatch),
    errors: [402, 404, 422, 429, 502],
    async handle(exchange) {
      const batch = await submit(exchange, parts, {
        shape: 'anthropic',
        form: messageItems,
        read: (body, items, origin) => readRequests(body, items, origin, parts),
      });
      exchange.reply(200, replyOf(batch, exchange));
    },
  };
}

interface ListQuery {
  limit?: number;
  after_id?: string;
  before_id?: string;
}

function list(parts: SubmitParts): Operation<Caller> {
  return {
    ...common,
    id: 'listMessageBatches',
    method: 'GET',
    path: '/messages/batches',
    summary: 'List the message batches of the workspace of the key, newest first',
    query: schema.ListMessageBatchesQuery,
    replies: ok('One page', schema.MessageBatchPage),
    async handle(exchange) {
      const { limit = schema.DEFAULT_PAGE, after_id, before_id } = exchange.query as ListQuery;
      if (after_id !== undefined && before_id !== undefined)
        throw invalidField('before_id', 'cannot be combined with after_id');
      const found = await listBatches(parts.database, {
        workspaceId: exchange.caller.workspaceId,
        shape: 'anthropic',
        after: cursorOf('after_id', after_id),
        before: cursorOf('before_id', before_id),
        limit: limit + 1,
      });
      const has_more = found.length > limit;
      // Before an id, the one too many is the newest.
      const shown = !has_more ? found : before_id === undefined ? found.slice(0, limit) : found.slice(1);
      const data = shown.map((batch) => replyOf(batch, exchange));
      exchange.reply(200, { data, has_more, first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null });
    },
  };
}

function cursorOf(name: string, id: string | undefined): string | null {
  if (id === undefined) return null;
  const stored = storedMessageBatchId(id);
  if (stored === undefined) throw invalidField(name, 'is not the id of a message batch');
  return stored;
}

function get(parts: SubmitParts): Operation<Caller> {
  return {
    ...one,
    id: 'getMessageBatch',
    method: 'GET',
    path: '/messages/batches/{id}',
    summary: 'Show the progress of a message batch',
    replies: ok('The batch', schema.MessageBatch),
    async handle(exchange) {
      exchange.reply(200, replyOf(await existing(exchange, parts), exchange));
    },
  };
}

function results(parts: SubmitParts): Operation<Caller> {
  return {
    ...one,
    id: 'getMessageBatchResults',
    method: 'GET',
    path: '/messages/batches/{id}/results',
    summary: 'Download the results of an ended message batch, one JSON object per line',
    errors: [409],
    replies: {
      200: { description: 'One result per line', schema: schema.MessageBatchResult, contentType: JSON_LINES },
    },
    async handle(exchange) {
      const batch = await existing(exchange, parts);
      if (!isTerminal(batch.state)) throw conflict('the batch has no results while it is being processed');
      if (batch.purgedAt !== null) throw new GatewayError('not_found', 'the results of this batch are no longer kept');
      await sendStream(exchange, JSON_LINES, resultLines(parts.database, batch.id, undefined, messageResultJson));
    },
  };
}

const JSON_LINES = 'application/x-jsonl';

function cancel(parts: SubmitParts): Operation<Caller> {
  return {
    ...one,
    id: 'cancelMessageBatch',
    method: 'POST',
    path: '/messages/batches/{id}/cancel',
    summary: 'Cancel a message batch: requests that have not begun do not run; results so far are kept',
    errors: [409],
    replies: ok('The batch', schema.MessageBatch),
    async handle(exchange) {
      const { id } = await existing(exchange, parts);
      // In `finalizing` all of its requests have run, which this API does not show yet.
      exchange.reply(200, replyOf(await cancelBatch(exchange, id, parts, ['finalizing']), exchange));
    },
  };
}

function remove(parts: SubmitParts): Operation<Caller> {
  return {
    ...one,
    id: 'deleteMessageBatch',
    method: 'DELETE',
    path: '/messages/batches/{id}',
    summary: 'Delete an ended message batch with its requests and results',
    errors: [409],
    replies: ok('The batch is gone', schema.MessageBatchDeleted),
    async handle(exchange) {
      const known = await existing(exchange, parts);
      await deleteBatch(exchange, known.id, parts);
      exchange.reply(200, { id: messageBatchId(known.id), type: 'message_batch_deleted' });
    },
  };
}

/** @throws GatewayError 404, also for a batch of another API */
function existing(exchange: Exchange<Caller>, parts: SubmitParts): Promise<Batch> {
  return ownBatch(exchange, storedMessageBatchId(exchange.params['id'] ?? ''), parts, 'anthropic');
}

function replyOf(batch: Batch, exchange: Exchange<Caller>) {
  return messageBatchReply(batch, (id) => `${publicUrl(exchange)}/api/v1/messages/batches/${id}/results`);
}
