/** `/batches/callback-secret` and `/batches/{id}/callback`. */
import type { Caller } from '../../access/index.ts';
import { authorOf } from '../../audit/index.ts';
import { orNotFound } from '../../base/errors.ts';
import { unixSeconds } from '../../base/timestamp.ts';
import {
  type CallbackParts,
  type CallbackSecret,
  currentSecret,
  findCallback,
  rotateSecret,
} from '../../callbacks/index.ts';
import { INFERENCE } from '../../http/access-rule.ts';
import { ok } from '../../http/contract.ts';
import type { Exchange, Operation } from '../../http/operation.ts';
import type { Batch } from '../batch.ts';
import { BatchParams } from '../schema.ts';
import * as schema from './schema.ts';
import { BATCH_CALLBACKS } from './store.ts';

interface Parts {
  callbacks: CallbackParts;
}

type FindBatch = (exchange: Exchange<Caller>) => Promise<Batch>;

const common = { tag: 'Batches', access: INFERENCE } as const;

/** Looks into `parts` only when a request comes. @param find the batch of the path */
export function callbackOperations(parts: Parts, find: FindBatch): Operation<Caller>[] {
  return [
    {
      ...common,
      id: 'getBatchCallbackSecret',
      method: 'GET',
      path: '/batches/callback-secret',
      summary: 'Show the secret that signs callbacks of the workspace of the key; it is created on first use',
      replies: ok('The secret', schema.CallbackSecret),
      async handle(exchange) {
        const { workspaceId } = exchange.caller;
        exchange.reply(200, secretReply(await currentSecret(parts.callbacks, workspaceId, authorOf(exchange))));
      },
    },
    {
      ...common,
      id: 'rotateBatchCallbackSecret',
      method: 'POST',
      path: '/batches/callback-secret/rotate',
      summary: 'Rotate the secret that signs callbacks; for 24 hours they are also signed with the previous one',
      replies: ok('The new secret', schema.CallbackSecret),
      async handle(exchange) {
        const { workspaceId } = exchange.caller;
        exchange.reply(200, secretReply(await rotateSecret(parts.callbacks, workspaceId, authorOf(exchange))));
      },
    },
    {
      ...common,
      id: 'getBatchCallback',
      method: 'GET',
      path: '/batches/{id}/callback',
      summary: 'Show whether the callback of a batch was delivered',
      params: BatchParams,
      replies: ok('The callback', schema.CallbackStatus),
      async handle(exchange) {
        const batch = await find(exchange);
        const found = await findCallback(parts.callbacks.database, BATCH_CALLBACKS, batch.id);
        const { url, status, attempts, attemptedAt, lastError } = orNotFound(
          found,
          'callback of this batch: it was submitted without callback_url',
        );
        exchange.reply(200, {
          ...{ url, status, attempts },
          last_attempt_at: attemptedAt && unixSeconds(attemptedAt),
          last_error: lastError,
        });
      },
    },
  ];
}

function secretReply({ secret, createdAt, previousExpiresAt }: CallbackSecret) {
  return {
    secret,
    created_at: unixSeconds(createdAt),
    previous_expires_at: previousExpiresAt && unixSeconds(previousExpiresAt),
  };
}
