/** `/batches`. */
import type { Caller } from '../access/index.ts';
import { authorOf } from '../audit/index.ts';
import { GatewayError, invalidField } from '../base/errors.ts';
import { readTimestamp } from '../base/timestamp.ts';
import { type CallbackParts, checkCallbackUrl, currentSecret, insertCallback } from '../callbacks/index.ts';
import { INFERENCE } from '../http/access-rule.ts';
import { ok } from '../http/contract.ts';
import type { Exchange, Operation } from '../http/operation.ts';
import type { Queryable } from '../storage/database.ts';
import { messageBatchOperations } from './anthropic/operations.ts';
import { type Batch, type BatchState, batchReply, isTerminal, storedId, wireId } from './batch.ts';
import { callbackOperations } from './callbacks/operations.ts';
import { BATCH_CALLBACKS } from './callbacks/store.ts';
import { cancelBatch, conflict, deleteBatch, ownBatch } from './change-batch.ts';
import { deleteItems } from './items.sql.ts';
import { beginBody, createFromFile, namesInputFile } from './openai/create.ts';
import { findBatchFiles } from './openai/files.sql.ts';
import { isOpenaiClient, openaiReply } from './openai/reply.ts';
import { OpenaiBatch } from './openai/schema.ts';
import { batchWithResults, resultLines, sendStream } from './results/lines.ts';
import { resultPosition } from './results/result.ts';
import * as schema from './schema.ts';
import * as store from './store.ts';
import { BodyIntake } from './submission/intake.ts';
import { MAX_INPUT_BYTES, type Submission, type SubmitParts, submit } from './submission/submit.ts';
import { svcItems } from './submission/submitted-item.ts';

export interface BatchParts extends SubmitParts {
  /** The name of `svc` on the wire. */
  namespace: string;
  callbacks: CallbackParts;
}

const DEFAULT_PAGE = 20;

const common = { tag: 'Batches', access: INFERENCE } as const;

/** Looks into `parts` only when a request comes. */
export function batchOperations(parts: BatchParts): Operation<Caller>[] {
  return [
    createBatch(parts),
    listBatches(parts),
    getBatch(parts),
    getResults(parts),
    cancel(parts),
    remove(parts),
    ...messageBatchOperations(parts),
    ...callbackOperations(parts, (exchange) => existing(exchange, parts)),
  ];
}

function createBatch(parts: BatchParts): Operation<Caller> {
  return {
    ...common,
    id: 'createBatch',
    method: 'POST',
    path: '/batches',
    summary: 'Run many requests in the background',
    upload: { contentType: 'application/json', schema: schema.CreateBatch, maxBytes: MAX_INPUT_BYTES },
    replies: {
      200: { description: 'The batch, whose input file is read in the background', schema: OpenaiBatch },
      202: { description: 'The batch, which is stored and will run', schema: schema.Batch },
    },
    errors: [402, 404, 422, 429, 502],
    async handle(exchange) {
      const { document, content } = await beginBody(exchange.upload!);
      const isFromFile = document !== undefined && namesInputFile(document, exchange.headers);
      const batch = isFromFile
        ? await createFromFile(exchange, parts, document, content)
        : await createFromBody(exchange, parts, content);
      exchange.reply(isFromFile ? 200 : 202, await shown(batch, exchange, parts));
    },
  };
}

function createFromBody(exchange: Exchange<Caller>, parts: BatchParts, content: AsyncIterable<Buffer>): Promise<Batch> {
  let callbackUrl: string | undefined;
  const submission: Submission = {
    shape: 'svc',
    form: svcItems,
    async read(body, items, origin) {
      const intake = new BodyIntake(
        { ...parts, callbackUrl: (value) => checkCallbackUrl(value, parts.callbacks) },
        items,
        origin,
      );
      const target = await intake.read(body);
      callbackUrl = intake.callbackUrl;
      // Deliveries need it, and a key that cannot be used should be known now.
      if (callbackUrl) await currentSecret(parts.callbacks, exchange.caller.workspaceId, authorOf(exchange));
      return target;
    },
    async inserted(tx, { id, createdAt }) {
      if (callbackUrl) await insertCallback(tx, BATCH_CALLBACKS, { subjectId: id, url: callbackUrl, createdAt });
    },
  };
  return submit(exchange, parts, submission, content);
}

interface ListQuery {
  limit?: number;
  after?: string;
  status?: BatchState[];
  created_after?: string;
  created_before?: string;
}

function listBatches(parts: BatchParts): Operation<Caller> {
  return {
    ...common,
    id: 'listBatches',
    method: 'GET',
    path: '/batches',
    summary: 'List the batches of the workspace of the key, newest first',
    query: schema.ListBatchesQuery,
    replies: ok('One page, without results', schema.BatchPage),
    async handle(exchange) {
      const query = exchange.query as ListQuery;
      const limit = query.limit ?? DEFAULT_PAGE;
      const found = await store.listBatches(parts.database, {
        workspaceId: exchange.caller.workspaceId,
        after: query.after === undefined ? null : cursorOf(query.after),
        states: query.status ?? null,
        ...createdWithin(query),
        limit: limit + 1,
      });
      const page = found.slice(0, limit);
      const [first, last] = [page[0], page.at(-1)].map((batch) => batch && wireId(batch.id));
      exchange.reply(200, {
        object: 'list',
        data: await shownAll(page, exchange, parts),
        first_id: first ?? null,
        last_id: last ?? null,
        has_more: found.length > limit,
      });
    },
  };
}

function cursorOf(after: string): string {
  const id = storedId(after);
  if (id === undefined) throw invalidField('after', 'is not the id of a batch');
  return id;
}

const DATE = /^\d{4}-\d{2}-\d{2}$/;
const UNIX_SECONDS = /^\d{1,11}$/;

/** Both bounds are exclusive, for `created_at` as it is shown: in whole seconds. */
function createdWithin({ created_after: after, created_before: before }: ListQuery) {
  const seconds = (name: string, text: string | undefined) => {
    const time = timeOf(name, text);
    return time && time.getTime() / 1000;
  };
  const [low, high] = [seconds('created_after', after), seconds('created_before', before)];
  return {
    createdFrom: low === null ? null : new Date((Math.floor(low) + 1) * 1000),
    createdBefore: high === null ? null : new Date(Math.ceil(high) * 1000),
  };
}

/** A date is its first moment, in UTC; a number is in Unix seconds, as `created_at` is. */
function timeOf(name: string, text: string | undefined): Date | null {
  if (text === undefined) return null;
  if (UNIX_SECONDS.test(text)) return new Date(Number(text) * 1000);
  return readTimestamp(name, DATE.test(text) ? `${text}T00:00:00Z` : text);
}

function getBatch(parts: BatchParts): Operation<Caller> {
  return {
    ...common,
    id: 'getBatch',
    method: 'GET',
    path: '/batches/{id}',
    summary: 'Show a batch, with its results once it is final',
    params: schema.BatchParams,
    query: schema.GetBatchQuery,
    errors: [410],
    replies: ok('The batch', schema.ShownBatch),
    async handle(exchange) {
      const batch = await kept(exchange, parts);
      const hasResults = isTerminal(batch.state) && batch.completed + batch.failed > 0;
      if (!hasResults || isShownAsOpenai(batch, exchange.headers) || exchange.query['results'] === false) {
        return exchange.reply(200, await shown(batch, exchange, parts));
      }
      await sendStream(exchange, 'application/json; charset=utf-8', batchWithResults(parts.database, batch));
    },
  };
}

function getResults(parts: BatchParts): Operation<Caller> {
  return {
    ...common,
    id: 'getBatchResults',
    method: 'GET',
    path: '/batches/{id}/results',
    summary: 'Download the results of a final batch, one JSON object per line, in the order of the requests',
    params: schema.BatchParams,
    query: schema.ResultsQuery,
    errors: [409, 410],
    replies: {
      200: { description: 'One result per line', schema: schema.BatchResult, contentType: 'application/x-ndjson' },
    },
    async handle(exchange) {
      const batch = await kept(exchange, parts);
      if (!isTerminal(batch.state)) throw conflict(`the batch has no results while it is ${batch.state}`);
      const { after } = exchange.query as { after?: string };
      const position = after === undefined ? -1 : resultPosition(batch, after);
      if (position === undefined) throw invalidField('after', 'is not the id of a result of this batch');
      await sendStream(exchange, 'application/x-ndjson', resultLines(parts.database, batch.id, position));
    },
  };
}

function cancel(parts: BatchParts): Operation<Caller> {
  return {
    ...common,
    id: 'cancelBatch',
    method: 'POST',
    path: '/batches/{id}/cancel',
    summary: 'Cancel a batch: requests that have not begun do not run; results so far are kept',
    params: schema.BatchParams,
    errors: [409],
    replies: ok('The batch, `cancelling`', schema.ShownBatch),
    async handle(exchange) {
      const known = await existing(exchange, parts);
      exchange.reply(200, await shown(await cancelBatch(exchange, known.id, parts), exchange, parts));
    },
  };
}

function remove(parts: BatchParts): Operation<Caller> {
  return {
    ...common,
    id: 'deleteBatch',
    method: 'DELETE',
    path: '/batches/{id}',
    summary: 'Delete a final batch with its requests and results; the records of its generations stay',
    params: schema.BatchParams,
    errors: [409],
    replies: ok('The batch is gone', schema.BatchDeleted),
    async handle(exchange) {
      const known = await existing(exchange, parts);
      const upstream = await deleteBatch(exchange, known.id, parts);
      exchange.reply(200, {
        id: wireId(known.id),
        object: 'batch',
        deletion: { [parts.namespace]: 'deleted', ...(upstream && { upstream }) },
      });
    },
  };
}

/** In the shape of OpenAI's clients for them, and for batches with an input file. Without results. */
async function shownAll(
  batches: readonly Batch[],
  { headers }: Exchange<Caller>,
  { database }: BatchParts,
): Promise<object[]> {
  const openai = batches.filter((batch) => isShownAsOpenai(batch, headers));
  const files = await findBatchFiles(
    database,
    openai.map(({ id }) => id),
  );
  return batches.map((batch) =>
    openai.includes(batch) ? openaiReply(batch, files.get(batch.id)) : { ...batchReply(batch), results: null },
  );
}

async function shown(batch: Batch, exchange: Exchange<Caller>, parts: BatchParts): Promise<object> {
  return (await shownAll([batch], exchange, parts))[0]!;
}

function isShownAsOpenai({ shape }: Batch, headers: Exchange['headers']): boolean {
  return shape === 'openai' || isOpenaiClient(headers);
}

/** What ends with a workspace. */
export function endBatches() {
  return async (tx: Queryable, workspaceId: string): Promise<void> => {
    for (const id of await store.deleteBatchesOf(tx, workspaceId)) await deleteItems(tx, id);
  };
}

function existing(exchange: Exchange<Caller>, parts: BatchParts): Promise<Batch> {
  return ownBatch(exchange, storedId(exchange.params['id'] ?? ''), parts);
}

/** @throws GatewayError 410 after the retention */
async function kept(exchange: Exchange<Caller>, parts: BatchParts): Promise<Batch> {
  const batch = await existing(exchange, parts);
  if (batch.purgedAt === null) return batch;
  throw new GatewayError('not_found', 'the requests and results of this batch are no longer kept', { status: 410 });
}
