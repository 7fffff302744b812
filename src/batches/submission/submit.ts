/** Accepts a batch, whatever API it comes through: stores its items while the body arrives, then the batch. */
import type { Caller } from '../../access/index.ts';
import { authorOf, changeAs } from '../../audit/index.ts';
import { uuidv7 } from '../../base/ids.ts';
import type { Exchange } from '../../http/operation.ts';
import { regionOf } from '../../inference/index.ts';
import type { Changes, Queryable } from '../../storage/database.ts';
import { errorCode } from '../../storage/unavailable.ts';
import { type Batch, type BatchShape, batchReply, resourceOf, WINDOW_MS } from '../batch.ts';
import type { ItemTarget } from '../item.ts';
import { removeItems } from '../jobs.ts';
import type { BatchRunner } from '../running/runner.ts';
import * as store from '../store.ts';
import { refuseWithoutBudget } from './affordable.ts';
import { HashedBody, idempotencyKeyOf, refuseOtherBody } from './idempotency.ts';
import { IntakeEnded, type IntakeParts, ItemIntake } from './item-intake.ts';
import type { ItemForm } from './submitted-item.ts';

export interface SubmitParts extends IntakeParts {
  changes: Changes;
  runner: BatchRunner;
}

/** The facts of a submission that do not depend on its body. */
export type Origin = Pick<ItemTarget, 'region' | 'shape' | 'headers'>;

export interface Submission {
  shape: BatchShape;
  form: ItemForm;
  /** Reads the body to its end and adds its items. Resolves with what they have in common. */
  read(body: AsyncIterable<Buffer>, items: ItemIntake, origin: Origin): Promise<ItemTarget>;
  /** In the transaction that inserts the batch. */
  inserted?(tx: Queryable, batch: Batch): Promise<void>;
}

export const MAX_INPUT_BYTES = 200 * 1024 * 1024;
const UNIQUE_VIOLATION = '23505';
/** Headers that a provider may receive with each request. */
const KEPT_HEADERS = ['anthropic-version', 'anthropic-beta'];

/**
 * Returns the new batch, or the one that was submitted with the same `Idempotency-Key` before.
 * @param content the body of the request
 * @throws GatewayError for the first thing that is wrong; then nothing is stored
 */
export async function submit(
  exchange: Exchange<Caller>,
  parts: SubmitParts,
  submission: Submission,
  content: AsyncIterable<Buffer> = exchange.upload!,
): Promise<Batch> {
  const { database, clock } = parts;
  const { caller, headers } = exchange;
  const key = idempotencyKeyOf(headers);
  const body = new HashedBody(content);
  const first = await submittedBefore(exchange, key, body, parts);
  if (first !== undefined) return first;
  await refuseWithoutBudget(caller, parts.inference);
  const id = uuidv7(clock.now());
  const { shape, form } = submission;
  const origin = originOf(exchange, shape, parts);
  await store.beginIntake(database, id, new Date(clock.now()));
  try {
    const items = new ItemIntake(parts, id, caller, form);
    const target = await submission.read(body, items, origin);
    await items.store();
    await items.checkTogether(target);
    const { total } = items;
    const made = { id, ...target, total, idempotencyKey: key, bodySha256: body.sha256() };
    return await insert(made, exchange, parts, async (tx, batch) => {
      if (!(await store.endIntake(tx, id))) throw new IntakeEnded();
      await submission.inserted?.(tx, batch);
      await parts.runner.announce(tx, id);
    });
  } catch (error) {
    // What cannot be removed now is removed a day later.
    await removeItems(parts, id).catch(() => {});
    if (!isRepeated(error)) throw error;
    const other = await submittedBefore(exchange, key, body, parts);
    if (other === undefined) throw error;
    return other;
  }
}

/** The same batch was submitted twice at the same time. */
export function isRepeated(error: unknown): boolean {
  return errorCode(error) === UNIQUE_VIOLATION;
}

export function originOf({ headers, host }: Exchange<Caller>, shape: BatchShape, { inference }: SubmitParts): Origin {
  return { shape, headers: keptHeaders(headers), region: regionOf(host, inference.hosts()) };
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
export async function submittedBefore(
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

/** @param begin further work of the transaction that inserts the batch */
export async function insert(
  made: NewBatch,
  exchange: Exchange<Caller>,
  parts: SubmitParts,
  begin: (tx: Queryable, batch: Batch) => Promise<void>,
): Promise<Batch> {
  const { organizationId, workspaceId, keyHash } = exchange.caller;
  const createdAt = new Date(parts.clock.now());
  const batch: Batch = {
    ...{ ...made, organizationId, workspaceId, keyHash, createdAt },
    state: 'validating',
    ...{ inProgressAt: null, finalizingAt: null },
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
    await store.insertBatch(tx, batch);
    await begin(tx, batch);
    await changed({ action: 'batch.created', ...resourceOf(batch), after: batchReply(batch) });
  });
  return batch;
}
