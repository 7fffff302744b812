/**
 * The operations on keys. Those on `/keys` see inference keys only: management keys are created and revoked on the
 * machine itself, so a leaked one can neither create others nor revoke the owner's.
 */
import { authorOf, type Changed, changeAs } from '../audit/index.ts';
import type { Clock } from '../base/clock.ts';
import { invalidField, notFound } from '../base/errors.ts';
import { ANY_KEY, MANAGEMENT } from '../http/access-rule.ts';
import { ok } from '../http/contract.ts';
import type { Exchange, Operation } from '../http/operation.ts';
import { changeEverywhere } from '../storage/change-everywhere.ts';
import type { Changes, Database, Queryable } from '../storage/database.ts';
import { rotateKey } from './aliases/rotate.ts';
import { type Alias, endAlias, predecessor } from './aliases/store.ts';
import { KEYS_TOPIC } from './authenticator.ts';
import type { Caller } from './caller.ts';
import { issueKey } from './issue.ts';
import { changedTerms, currentKeyReply, keyReply, keyResource, keyState } from './key.ts';
import { memberOperations } from './members/operations.ts';
import * as schema from './schema.ts';
import * as store from './store.ts';
import { isHash } from './token.ts';
import type { UsageOf } from './usage.ts';
import { chosenWorkspace } from './workspace-choice.ts';

export interface OperationParts {
  database: Database;
  changes: Changes;
  clock: Clock;
  usageOf: UsageOf;
  /** Resolves when everything that any process settled before the call is in the database. */
  spendEntered(): Promise<void>;
}

const PAGE_SIZE = 100;

/** Reads `parts` only while handling a request, so that the contract can be built without a database. */
export function keyOperations(parts: OperationParts): Operation<Caller>[] {
  return [
    currentKey(parts),
    listKeys(parts),
    createKey(parts),
    getKey(parts),
    updateKey(parts),
    rotateKey(parts),
    deleteKey(parts),
    ...memberOperations(parts),
  ];
}

function currentKey(parts: OperationParts): Operation<Caller> {
  return {
    id: 'getCurrentKey',
    method: 'GET',
    path: '/key',
    summary: 'Get the key that authenticates the request',
    tag: 'Keys',
    access: ANY_KEY,
    replies: ok('The key, its limit and its spend', schema.CurrentKeyEnvelope),
    async handle(exchange) {
      const { usageOf } = parts;
      const { caller } = exchange;
      const usage = await usageOf([caller.keyId]);
      exchange.reply(200, { data: currentKeyReply(caller, usage.get(caller.keyId)) });
    },
  };
}

function listKeys(parts: OperationParts): Operation<Caller> {
  return {
    id: 'listKeys',
    method: 'GET',
    path: '/keys',
    summary: 'List the inference keys of a workspace, 100 per page, newest first',
    tag: 'Keys',
    access: MANAGEMENT,
    query: schema.ListKeysQuerySchema,
    replies: ok('One page of keys, from the default workspace unless `workspace_id` is given', schema.KeyListEnvelope),
    async handle(exchange) {
      const { database, usageOf } = parts;
      const { organizationId } = exchange.caller;
      const query = exchange.query as schema.ListKeysQuery;
      const workspaceId = await chosenWorkspace(database, organizationId, query.workspace_id);
      const { include_disabled: includeDisabled = false, offset = 0 } = query;
      const page = { organizationId, workspaceId, includeDisabled, offset, limit: PAGE_SIZE };
      const keys = await store.listInferenceKeys(database, page);
      const usage = await usageOf(keys.map((key) => key.caller.keyId));
      exchange.reply(200, { data: keys.map((key) => keyReply(key, usage.get(key.caller.keyId))) });
    },
  };
}

function createKey(parts: OperationParts): Operation<Caller> {
  return {
    id: 'createKey',
    method: 'POST',
    path: '/keys',
    summary: 'Create an inference key',
    tag: 'Keys',
    access: MANAGEMENT,
    body: { schema: schema.CreateKeySchema },
    errors: [409],
    replies: { 201: { description: 'The key. Its token is returned only once', schema: schema.CreatedKeyEnvelope } },
    async handle(exchange) {
      const { userId } = exchange.caller;
      const body = exchange.body as schema.CreateKeyBody;
      const { key, token } = await changeEverywhere(parts, (tx, announce) =>
        issueKey(tx, announce, { body, creatorUserId: userId }, parts.clock.now(), authorOf(exchange)),
      );
      exchange.reply(201, { data: keyReply(key), key: token });
    },
  };
}

function getKey(parts: OperationParts): Operation<Caller> {
  return {
    id: 'getKey',
    method: 'GET',
    path: '/keys/{hash}',
    summary: 'Get an inference key',
    tag: 'Keys',
    access: MANAGEMENT,
    params: schema.KeyParamsSchema,
    replies: ok('The key', schema.KeyEnvelope),
    async handle(exchange) {
      const { database, usageOf } = parts;
      const key = await existingKey(database, exchange.caller.organizationId, hashOf(exchange));
      const usage = await usageOf([key.caller.keyId]);
      exchange.reply(200, { data: keyReply(key, usage.get(key.caller.keyId)) });
    },
  };
}

function updateKey(parts: OperationParts): Operation<Caller> {
  return {
    id: 'updateKey',
    method: 'PATCH',
    path: '/keys/{hash}',
    summary: 'Update an inference key',
    tag: 'Keys',
    access: MANAGEMENT,
    params: schema.KeyParamsSchema,
    body: { schema: schema.UpdateKeySchema },
    replies: ok('The updated key. The change is in effect in every process', schema.KeyEnvelope),
    async handle(exchange) {
      const { clock, usageOf } = parts;
      const { organizationId } = exchange.caller;
      const hash = hashOf(exchange);
      const { key, isNewLimit } = await changeAs(authorOf(exchange), parts, async (tx, changed) => {
        const before = await lockedKey(tx, organizationId, hash);
        const terms = changedTerms(before, exchange.body as schema.UpdateKeyBody);
        if (!terms.disabled && !(await store.hasWorkspace(tx, organizationId, before.caller.workspaceId, true))) {
          throw invalidField('disabled', 'cannot be false, because the workspace of the key was deleted');
        }
        await store.updateKey(tx, before.caller.keyId, terms, new Date(clock.now()));
        const key = await existingKey(tx, organizationId, hash);
        await changed({
          action: 'key.updated',
          ...keyResource(key),
          before: keyState(before),
          after: keyState(key),
          announce: [KEYS_TOPIC, hash],
        });
        return { key, isNewLimit: terms.limitNano !== null && resetsUsage(before.caller, terms) };
      });
      // Leases do not cover spend from before the new limit.
      if (isNewLimit) await parts.spendEntered();
      const usage = await usageOf([key.caller.keyId]);
      exchange.reply(200, { data: keyReply(key, usage.get(key.caller.keyId)) });
    },
  };
}

type LimitTerms = Pick<Caller, 'limitNano' | 'limitReset' | 'includeByokInLimit'>;

/** True if the change starts a new window, or makes other spend count. */
function resetsUsage(before: LimitTerms, after: LimitTerms): boolean {
  const { limitNano, limitReset, includeByokInLimit } = before;
  return limitNano === null || limitReset !== after.limitReset || includeByokInLimit !== after.includeByokInLimit;
}

function deleteKey(parts: OperationParts): Operation<Caller> {
  return {
    id: 'deleteKey',
    method: 'DELETE',
    path: '/keys/{hash}',
    summary: 'Delete an inference key',
    tag: 'Keys',
    access: MANAGEMENT,
    params: schema.KeyParamsSchema,
    replies: ok('The key is deleted and rejected by every process', schema.DeletedEnvelope),
    async handle(exchange) {
      const { organizationId } = exchange.caller;
      const hash = hashOf(exchange);
      const now = new Date(parts.clock.now());
      await changeAs(authorOf(exchange), parts, async (tx, changed) => {
        const former = isHash(hash) ? await predecessor(tx, organizationId, hash) : undefined;
        if (former !== undefined) return endPredecessor(tx, changed, organizationId, former, now);
        const key = await lockedKey(tx, organizationId, hash);
        await store.markKeyDeleted(tx, key.caller.keyId, now);
        await changed({
          action: 'key.deleted',
          ...keyResource(key),
          before: keyState(key),
          announce: [KEYS_TOPIC, hash],
        });
      });
      exchange.reply(200, { deleted: true });
    },
  };
}

/** Ends the secret that a key had before its rotation, unless it has already ended; the key itself stays. */
async function endPredecessor(
  tx: Queryable,
  changed: Changed,
  organizationId: string,
  former: Alias,
  now: Date,
): Promise<void> {
  if (former.expiresAt !== null && former.expiresAt <= now) return;
  await endAlias(tx, former.hash, now);
  const key = await existingKey(tx, organizationId, former.keyHash);
  await changed({
    action: 'key.predecessor_ended',
    ...keyResource(key),
    before: { previous_secret: former.hash, previous_secret_ends_at: former.expiresAt },
    after: { previous_secret: former.hash, previous_secret_ends_at: now },
    announce: [KEYS_TOPIC, former.hash],
  });
}

function hashOf(exchange: Exchange<Caller>): string {
  return exchange.params['hash'] ?? '';
}

async function existingKey(db: Queryable, organizationId: string, hash: string): Promise<store.StoredKey> {
  const key = isHash(hash) ? await store.inferenceKey(db, organizationId, hash) : undefined;
  if (key !== undefined) return key;
  const former = isHash(hash) ? await predecessor(db, organizationId, hash) : undefined;
  const now = former && `: it was rotated, and its hash is now ${former.keyHash}`;
  throw notFound(`inference key with this hash${now ?? ''}`);
}

async function lockedKey(tx: Queryable, organizationId: string, hash: string): Promise<store.StoredKey> {
  if (isHash(hash)) await store.lockKey(tx, organizationId, hash);
  return existingKey(tx, organizationId, hash);
}
