/** `/batches`. */
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Caller } from '../access/index.ts';
import { authorOf, changeAs } from '../audit/index.ts';
import { GatewayError, invalidField, orNotFound } from '../base/errors.ts';
import { uuidv7 } from '../base/ids.ts';
import { readTimestamp } from '../base/timestamp.ts';
import { INFERENCE } from '../http/access-rule.ts';
import { ok } from '../http/contract.ts';
import type { Exchange, Operation } from '../http/operation.ts';
import { budgetsOf, refuseUnroutable, regionOf } from '../inference/index.ts';
import type { Changes, Queryable } from '../storage/database.ts';
import { errorCode } from '../storage/unavailable.ts';
import { type Batch, type BatchState, batchReply, isTerminal, nextState, storedId, wireId } from './batch.ts';
import { HashedBody, idempotencyKeyOf, refuseOtherBody } from './idempotency.ts';
import { Intake, type IntakeParts, type Taken } from './intake.ts';
import { acceptItem } from './item.ts';
import { deleteItems, itemsFrom } from './items.sql.ts';
import { type BatchJobs, removeItems } from './jobs.ts';
import { ItemSink } from './result.ts';
import { batchWithResults, resultLines } from './results.ts';
import * as schema from './schema.ts';
import * as store from './store.ts';

export interface BatchParts extends IntakeParts {
  changes: Changes;
  jobs: BatchJobs;
  /** The name of `svc` on the wire. */
  namespace: string;
}

const MAX_INPUT_BYTES = 200 * 1024 * 1024;
const WINDOW_MS = 24 * 3_600_000;
const DEFAULT_PAGE = 20;
const UNIQUE_VIOLATION = '23505';
const BATCH = 'batch with this id in the workspace of the key';

const common = { tag: 'Batches', access: INFERENCE } as const;

/** Looks into `parts` only when a request comes. */
export function batchOperations(parts: BatchParts): Operation<Caller>[] {
  return [
    createBatch(parts),
    listBatches(parts),
    getBatch(parts),
    getResults(parts),
    cancelBatch(parts),
    deleteBatch(parts),
  ];
}

function createBatch(parts: BatchParts): Operation<Caller> {
  return {
    ...common,
    id: 'createBatch',
    method: 'POST',
    path: '/batches',
    summary: 'Run many requests in the background',
    upload: { contentType: 'application/json', schema: schema.CreateBatchBody, maxBytes: MAX_INPUT_BYTES },
    replies: { 202: { description: 'The batch, which is stored and will run', schema: schema.Batch } },
    errors: [402, 404, 422, 429, 502],
    async handle(exchange) {
      const { database, clock, inference } = parts;
      const key = idempotencyKeyOf(exchange.headers);
      const body = new HashedBody(exchange.upload!);
      if (await repeats(exchange, key, body, parts)) return;
      await refuseWithoutBudget(exchange.caller, parts);
      const id = uuidv7(clock.now());
      const region = regionOf(exchange.host, inference.hosts());
      await store.beginIntake(database, id, new Date(clock.now()));
      try {
        const taken = await new Intake(parts, id, exchange.caller, region).take(body);
        await checkRoute(id, taken, exchange.caller, parts);
        const batch = await insert(id, { ...taken, idempotencyKey: key, bodySha256: body.sha256() }, exchange, parts);
        exchange.reply(202, { ...batchReply(batch), results: null });
      } catch (error) {
        // What cannot be removed now is removed a day later.
        await removeItems(parts, id).catch(() => {});
        // The same batch was submitted twice at the same time.
        if (errorCode(error) === UNIQUE_VIOLATION && (await repeats(exchange, key, body, parts))) return;
        throw error;
      }
    },
  };
}

/** Answers with the batch that was submitted with this key before, if there is one. @throws GatewayError 422 */
async function repeats(
  exchange: Exchange<Caller>,
  key: string | null,
  body: HashedBody,
  { database }: BatchParts,
): Promise<boolean> {
  if (key === null) return false;
  const batch = await store.findByIdempotencyKey(database, exchange.caller.workspaceId, key);
  if (batch === undefined) return false;
  for await (const _ of body);
  refuseOtherBody(batch, body.sha256());
  exchange.reply(202, { ...batchReply(batch), results: null });
  return true;
}

async function insert(
  id: string,
  { target, total, idempotencyKey, bodySha256 }: Taken & Pick<Batch, 'idempotencyKey' | 'bodySha256'>,
  exchange: Exchange<Caller>,
  parts: BatchParts,
): Promise<Batch> {
  const { organizationId, workspaceId, keyHash } = exchange.caller;
  const createdAt = new Date(parts.clock.now());
  const batch: Batch = {
    ...{ id, organizationId, workspaceId, keyHash, ...target, total, createdAt },
    state: 'validating',
    expiresAt: new Date(createdAt.getTime() + WINDOW_MS),
    finalizedAt: null,
    completed: 0,
    failed: 0,
    usage: null,
    error: null,
    purgedAt: null,
    ...{ idempotencyKey, bodySha256 },
    seenAt: createdAt,
  };
  await changeAs(authorOf(exchange), parts, async (tx, changed) => {
    if (!(await store.endIntake(tx, id))) throw new GatewayError('invalid_request', 'the body took longer than a day');
    await store.insertBatch(tx, batch);
    await parts.jobs.start(tx, id, total);
    await changed({ action: 'batch.created', ...resourceOf(batch), after: batchReply(batch) });
  });
  return batch;
}

/** @throws GatewayError 402 if a budget of the key is exhausted */
async function refuseWithoutBudget(caller: Caller, { inference }: BatchParts): Promise<void> {
  await inference.refresh?.();
  const states = await inference.spend.stateOf(budgetsOf(caller, inference.accountBalanceNano()));
  const empty = states.find(({ remainingNano }) => remainingNano <= 0n);
  if (empty === undefined) return;
  const { scope } = empty.budget;
  throw new GatewayError(
    'payment_required',
    `the ${scope === 'account' ? 'balance' : 'budget'} of the ${scope} is exhausted`,
  );
}

/** What forbids a model or provider forbids it for all items alike. */
async function checkRoute(id: string, { target }: Taken, caller: Caller, parts: BatchParts): Promise<void> {
  const { database, clock, inference } = parts;
  const [first] = await itemsFrom(database, id, 0, { count: 1, bytes: 1 });
  await refuseUnroutable(acceptItem(first!.body, target, caller, clock.now()), new ItemSink(), inference);
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
        createdAfter: timeOf('created_after', query.created_after),
        createdBefore: timeOf('created_before', query.created_before),
        limit: limit + 1,
      });
      const data = found.slice(0, limit).map((batch) => ({ ...batchReply(batch), results: null }));
      exchange.reply(200, {
        object: 'list',
        data,
        first_id: data[0]?.id ?? null,
        last_id: data.at(-1)?.id ?? null,
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

/** A date is its first moment, in UTC. */
function timeOf(name: string, text: string | undefined): Date | null {
  if (text === undefined) return null;
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
    errors: [410],
    replies: ok('The batch', schema.Batch),
    async handle(exchange) {
      const batch = await kept(exchange, parts);
      if (!isTerminal(batch.state) || batch.completed + batch.failed === 0) {
        return exchange.reply(200, { ...batchReply(batch), results: null });
      }
      await send(exchange, 'application/json; charset=utf-8', batchWithResults(parts.database, batch));
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
    errors: [409, 410],
    replies: {
      200: { description: 'One result per line', schema: schema.BatchResult, contentType: 'application/x-ndjson' },
    },
    async handle(exchange) {
      const batch = await kept(exchange, parts);
      if (!isTerminal(batch.state)) throw conflict(`the batch has no results while it is ${batch.state}`);
      await send(exchange, 'application/x-ndjson', resultLines(parts.database, batch.id));
    },
  };
}

function cancelBatch(parts: BatchParts): Operation<Caller> {
  return {
    ...common,
    id: 'cancelBatch',
    method: 'POST',
    path: '/batches/{id}/cancel',
    summary: 'Cancel a batch: requests that have not begun do not run; results so far are kept',
    params: schema.BatchParams,
    errors: [409],
    replies: ok('The batch, `cancelling`', schema.Batch),
    async handle(exchange) {
      const known = await existing(exchange, parts);
      const batch = await changeAs(authorOf(exchange), parts, async (tx, changed) => {
        const before = orNotFound(await store.findBatch(tx, known.id, true), BATCH);
        const state = nextState(before.state, 'cancel');
        if (state === undefined) throw conflict(`the batch is ${before.state} and cannot be cancelled`);
        if (state === before.state) return before;
        await store.changeState(tx, before.id, { state });
        await parts.jobs.start(tx, before.id, 0);
        const after = { ...before, state };
        await changed({
          action: 'batch.cancelled',
          ...resourceOf(after),
          before: batchReply(before),
          after: batchReply(after),
        });
        return after;
      });
      exchange.reply(200, { ...batchReply(batch), results: null });
    },
  };
}

function deleteBatch(parts: BatchParts): Operation<Caller> {
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
      await changeAs(authorOf(exchange), parts, async (tx, changed) => {
        const batch = orNotFound(await store.findBatch(tx, known.id, true), BATCH);
        if (!isTerminal(batch.state)) throw conflict(`the batch is ${batch.state}; cancel it first`);
        await store.deleteBatch(tx, batch.id);
        await deleteItems(tx, batch.id);
        await changed({ action: 'batch.deleted', ...resourceOf(batch), before: batchReply(batch) });
      });
      exchange.reply(200, {
        id: wireId(known.id),
        object: 'batch',
        deletion: { [parts.namespace]: 'deleted' },
      });
    },
  };
}

/** What ends with a workspace: its batches. */
export function endBatches() {
  return async (tx: Queryable, workspaceId: string): Promise<void> => {
    for (const id of await store.deleteBatchesOf(tx, workspaceId)) await deleteItems(tx, id);
  };
}

async function existing({ params, caller }: Exchange<Caller>, { database }: BatchParts): Promise<Batch> {
  const id = storedId(params['id'] ?? '');
  const batch = id === undefined ? undefined : await store.findBatch(database, id);
  return orNotFound(batch?.workspaceId === caller.workspaceId ? batch : undefined, BATCH);
}

/** @throws GatewayError 410 after the retention */
async function kept(exchange: Exchange<Caller>, parts: BatchParts): Promise<Batch> {
  const batch = await existing(exchange, parts);
  if (batch.purgedAt === null) return batch;
  throw new GatewayError('not_found', 'the requests and results of this batch are no longer kept', { status: 410 });
}

function conflict(message: string): GatewayError {
  return new GatewayError('invalid_request', message, { status: 409 });
}

async function send({ response }: Exchange<Caller>, type: string, content: AsyncIterable<Buffer>): Promise<void> {
  response.writeHead(200, { 'Content-Type': type, 'X-Content-Type-Options': 'nosniff' });
  await pipeline(Readable.from(content), response);
}

function resourceOf({ id, workspaceId }: Batch) {
  return { resourceType: 'batch', resourceId: wireId(id), workspaceId };
}
