/**
 * POST /keys/{hash}/rotate: gives a key a new secret. Spend, limits, guardrails and workspace stay, so rotation cannot
 * be used to escape any of them. The previous secret keeps working for a limited time, or until it is deleted.
 */
import { authorOf, changeAs } from '../../audit/index.ts';
import { GatewayError, notFound } from '../../base/errors.ts';
import { MANAGEMENT } from '../../http/access-rule.ts';
import type { Operation } from '../../http/operation.ts';
import type { Queryable } from '../../storage/database.ts';
import { KEYS_TOPIC, WORKSPACES_TOPIC } from '../authenticator.ts';
import type { Caller } from '../caller.ts';
import { keyReply, keyResource, keyState } from '../key.ts';
import type { OperationParts } from '../operations.ts';
import * as schema from '../schema.ts';
import { inferenceKey, lockKey, type StoredKey } from '../store.ts';
import { createToken, hashToken, isHash, keyNumber, maskToken } from '../token.ts';
import { insertAlias, predecessor, replaceSecret } from './store.ts';

/** Longest time for which both secrets work: 30 days. */
const LONGEST_OVERLAP_SECONDS = 2_592_000;
const NO_KEY = 'inference key with this hash';

export function rotateKey(parts: OperationParts): Operation<Caller> {
  return {
    id: 'rotateKey',
    method: 'POST',
    path: '/keys/{hash}/rotate',
    summary: 'Rotate the secret of an inference key; all its settings and its spend stay',
    tag: 'Keys',
    access: MANAGEMENT,
    params: schema.KeyParamsSchema,
    body: { schema: schema.RotateKeySchema },
    errors: [409],
    replies: { 201: { description: 'The key. Its token is returned only once', schema: schema.RotatedKeyEnvelope } },
    async handle(exchange) {
      const { clock, usageOf } = parts;
      const { organizationId } = exchange.caller;
      const { revoke_previous_after_seconds: seconds } = exchange.body as schema.RotateKeyBody;
      const before = exchange.params['hash'] ?? '';
      const token = createToken('inference');
      const hash = hashToken(token);
      const now = new Date(clock.now());
      const endsAt =
        seconds === null ? null : new Date(now.getTime() + Math.min(seconds, LONGEST_OVERLAP_SECONDS) * 1000);
      const key = await changeAs(authorOf(exchange), parts, async (tx, changed, announce) => {
        const old = await rotatable(tx, organizationId, before, now);
        const { keyId } = old.caller;
        const secret = { hash, label: maskToken(token), number: keyNumber(hash), formerNumber: keyNumber(before) };
        const workspaces = await replaceSecret(tx, keyId, secret, now);
        const alias = { hash: before, keyId, kind: 'predecessor' as const, label: old.caller.label };
        await insertAlias(tx, { ...alias, createdAt: now, expiresAt: endsAt });
        const key = (await inferenceKey(tx, organizationId, hash))!;
        await changed({
          action: 'key.rotated',
          ...keyResource(key),
          before: keyState(old),
          after: { ...keyState(key), previous_secret_ends_at: endsAt },
          announce: [KEYS_TOPIC, before, hash],
        });
        await announce(WORKSPACES_TOPIC, ...workspaces);
        return key;
      });
      const usage = await usageOf([key.caller.keyId]);
      exchange.reply(201, {
        data: { ...keyReply(key, usage.get(key.caller.keyId)), rotated_from_hash: before },
        key: token,
        predecessor: { hash: before, disabled: seconds === 0, expires_at: endsAt?.toISOString() ?? null },
      });
    },
  };
}

/** Throws GatewayError 404 for an unknown hash, and 409 for a key that is disabled, expired or already rotated. */
async function rotatable(tx: Queryable, organizationId: string, hash: string, now: Date): Promise<StoredKey> {
  if (!isHash(hash)) throw notFound(NO_KEY);
  await lockKey(tx, organizationId, hash);
  const key = await inferenceKey(tx, organizationId, hash);
  if (key === undefined) {
    const alias = await predecessor(tx, organizationId, hash);
    if (alias === undefined) throw notFound(NO_KEY);
    throw conflict(`The key was already rotated; its hash is now ${alias.keyHash}.`);
  }
  if (key.disabled) throw conflict('The key is disabled.');
  if (key.caller.expiresAt !== null && key.caller.expiresAt <= now.getTime()) throw conflict('The key has expired.');
  return key;
}

function conflict(message: string): GatewayError {
  return new GatewayError('invalid_request', message, { status: 409 });
}
