/** Takes a batch in, whatever API it comes through: stores its items while the body arrives, then the batch. */
import type { Caller } from '../access/index.ts';
import { authorOf, changeAs } from '../audit/index.ts';
import { GatewayError } from '../base/errors.ts';
import { uuidv7 } from '../base/ids.ts';
import type { Exchange } from '../http/operation.ts';
import { budgetsOf, refuseUnroutable, regionOf } from '../inference/index.ts';
import type { Changes, Queryable } from '../storage/database.ts';
import { errorCode } from '../storage/unavailable.ts';
import { type Batch, type BatchShape, batchReply, resourceOf } from './batch.ts';
import { HashedBody, idempotencyKeyOf, refuseOtherBody } from './idempotency.ts';
import { acceptItem, type ItemTarget } from './item.ts';
import { type IntakeParts, ItemIntake } from './item-intake.ts';
import { itemsFrom } from './items.sql.ts';
import { removeItems } from './jobs.ts';
import { ItemSink } from './result.ts';
import type { BatchRunner } from './runner.ts';
import * as store from './store.ts';
import type { ItemForm } from './submitted-item.ts';

export interface SubmitParts extends IntakeParts {
  changes: Changes;
  runner: BatchRunner;
}

/** What every batch of a submission has, whatever its body says. */
export type Origin = Pick<ItemTarget, 'region' | 'shape' | 'headers'>;

interface Submission {
  shape: BatchShape;
  form: ItemForm;
  /** Reads the body to its end and adds its items. Resolves with what they have in common. */
  read(body: AsyncIterable<Buffer>, items: ItemIntake, origin: Origin): Promise<ItemTarget>;
  /** In the transaction that inserts the batch. */
  inserted?(tx: Queryable, batch: Batch): Promise<void>;
}

export const MAX_INPUT_BYTES = 200 * 1024 * 1024;
const WINDOW_MS = 24 * 3_600_000;
const UNIQUE_VIOLATION = '23505';
/** Headers that a provider may receive with each request. */
const KEPT_HEADERS = ['anthropic-version', 'anthropic-beta'];

/**
 * Returns the new batch, or the one that was submitted with the same `Idempotency-Key` before.
 * @throws GatewayError for the first thing that is wrong; then nothing is stored
 */
export async function submit(exchange: Exchange<Caller>, parts: SubmitParts, submission: Submission): Promise<Batch> {
  const { database, clock, inference } = parts;
  const { caller, headers, host } = exchange;
  const key = idempotencyKeyOf(headers);
  const body = new HashedBody(exchange.upload!);
  const first = await submittedBefore(exchange, key, body, parts);
  if (first !== undefined) return first;
  await refuseWithoutBudget(caller, parts);
  const id = uuidv7(clock.now());
  const { shape, form } = submission;
  const origin = { shape, headers: keptHeaders(headers), region: regionOf(host, inference.hosts()) };
  await store.beginIntake(database, id, new Date(clock.now()));
  try {
    const items = new ItemIntake(parts, id, caller, form);
    const target = await submission.read(body, items, origin);
    await items.store();
    for (const position of items.examples) await checkRoute(id, position, target, caller, parts);
    const { total } = items;
    const made = { id, ...target, total, idempotencyKey: key, bodySha256: body.sha256() };
    return await insert(made, submission, exchange, parts);
  } catch (error) {
    // What cannot be removed now is removed a day later.
    await removeItems(parts, id).catch(() => {});
    if (errorCode(error) !== UNIQUE_VIOLATION) throw error;
    // The same batch was submitted twice at the same time.
    const other = await submittedBefore(exchange, key, body, parts);
    if (other === undefined) throw error;
    return other;
  }
}

function keptHeaders(headers: Exchange['headers']): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const name of KEPT_HEADERS) {
    const value = headers[name];
    if (typeof value === 'string') kept[name] = value;
  }
  return kept;
}

/** The batch that was submitted with this key before, if there is one. @throws GatewayError 422 for another body */
async function submittedBefore(
  { caller }: Exchange<Caller>,
  key: string | null,
  body: HashedBody,
  { database }: SubmitParts,
): Promise<Batch | undefined> {
  if (key === null) return undefined;
  const batch = await store.findByIdempotencyKey(database, caller.workspaceId, key);
  if (batch === undefined) return undefined;
  for await (const _ of body);
  refuseOtherBody(batch, body.sha256());
  return batch;
}

type NewBatch = ItemTarget & Pick<Batch, 'id' | 'total' | 'idempotencyKey' | 'bodySha256'>;

async function insert(
  made: NewBatch,
  { inserted }: Submission,
  exchange: Exchange<Caller>,
  parts: SubmitParts,
): Promise<Batch> {
  const { organizationId, workspaceId, keyHash } = exchange.caller;
  const createdAt = new Date(parts.clock.now());
  const batch: Batch = {
    ...{ ...made, organizationId, workspaceId, keyHash, createdAt },
    state: 'validating',
    expiresAt: new Date(createdAt.getTime() + WINDOW_MS),
    finalizedAt: null,
    cancelledAt: null,
    completed: 0,
    failed: 0,
    cancelled: 0,
    expired: 0,
    usage: null,
    error: null,
    purgedAt: null,
    seenAt: createdAt,
  };
  await changeAs(authorOf(exchange), parts, async (tx, changed) => {
    if (!(await store.endIntake(tx, batch.id))) {
      throw new GatewayError('invalid_request', 'the body took longer than a day');
    }
    await store.insertBatch(tx, batch);
    await inserted?.(tx, batch);
    await parts.runner.announce(tx, batch.id);
    await changed({ action: 'batch.created', ...resourceOf(batch), after: batchReply(batch) });
  });
  return batch;
}

/** @throws GatewayError 402 if a budget of the key is exhausted */
async function refuseWithoutBudget(caller: Caller, { inference }: SubmitParts): Promise<void> {
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

/** What forbids a model or provider forbids it for all items of the model alike. */
async function checkRoute(
  id: string,
  position: number,
  target: ItemTarget,
  caller: Caller,
  { database, clock, inference }: SubmitParts,
): Promise<void> {
  const [item] = await itemsFrom(database, id, position, { count: 1, bytes: 1 });
  await refuseUnroutable(acceptItem(item!.body, target, caller, clock.now()), new ItemSink(), inference);
}
