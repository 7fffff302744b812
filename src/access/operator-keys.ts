/**
 * Keys as the operator manages them on the machine (`gatehouse keys`): all kinds, without authenticating. This is how
 * to recover from a lost management key. No HTTP operation offers it.
 */
import { changeAs, operatorAuthor } from '../audit/index.ts';
import type { Clock } from '../base/clock.ts';
import { changeEverywhere } from '../storage/change-everywhere.ts';
import type { Changes, Database, Queryable } from '../storage/database.ts';
import { KEYS_TOPIC } from './authenticator.ts';
import type { KeyKind } from './caller.ts';
import { insertKey } from './issue.ts';
import { keyResource, keyState, newKeySettings } from './key.ts';
import type { CreateKeyBody } from './schema.ts';
import * as store from './store.ts';
import { createToken, hashToken } from './token.ts';

export interface OperatorKeysParts {
  database: Database;
  changes: Changes;
  clock: Clock;
}

/** A key in the operator's list. */
export interface OperatorKey {
  hash: string;
  kind: KeyKind;
  name: string;
  label: string;
  disabled: boolean;
  createdAt: Date;
  expiresAt: Date | null;
}

/** Settings of a new key; absent members default as in `POST /keys`. */
export type OperatorKeyBody = Pick<CreateKeyBody, 'name' | 'limit' | 'limit_reset' | 'expires_at'>;

const SHORTEST_PREFIX = 8;

/**
 * Creates a key that belongs to the organization itself and returns its token, which is stored nowhere. Throws
 * GatewayError 400 for an invalid setting, and an Error before the first start.
 */
export async function createOperatorKey(
  parts: OperatorKeysParts,
  kind: KeyKind,
  body: OperatorKeyBody,
): Promise<string> {
  const { clock } = parts;
  const settings = newKeySettings(body, clock.now());
  const token = createToken(kind);
  await changeEverywhere(parts, async (tx, announce) => {
    const organizationId = await theOrganization(tx);
    const workspaceId = kind === 'inference' ? await store.defaultWorkspaceId(tx, organizationId) : null;
    if (workspaceId === undefined) throw new Error('the default workspace was deleted; create the key with POST /keys');
    const now = clock.now();
    const key = { kind, token, settings, workspaceId, creatorUserId: null };
    await insertKey(tx, operatorAuthor(organizationId, now), key, now);
    await announce(KEYS_TOPIC, hashToken(token));
  });
  return token;
}

/** Every key that has not been revoked, newest first. */
export async function listOperatorKeys({ database }: Pick<OperatorKeysParts, 'database'>): Promise<OperatorKey[]> {
  return (await store.allKeys(database, await theOrganization(database))).map(operatorKey);
}

/**
 * Revokes the one key whose hash begins with `hashPrefix` (at least 8 characters), in every process. Throws an Error
 * when no key or several keys match.
 */
export async function revokeOperatorKey(parts: OperatorKeysParts, hashPrefix: string): Promise<OperatorKey> {
  const prefix = hashPrefix.toLowerCase();
  if (!/^[0-9a-f]+$/.test(prefix) || prefix.length < SHORTEST_PREFIX) {
    throw new Error(`give the key's hash, or at least its first ${SHORTEST_PREFIX} characters`);
  }
  const { database, clock } = parts;
  const keys = await store.allKeys(database, await theOrganization(database));
  const found = keys.filter(({ caller }) => caller.keyHash.startsWith(prefix));
  const [first] = found;
  if (first === undefined) throw noneBegins(prefix);
  if (found.length > 1)
    throw new Error(`${found.length} keys have a hash that begins with ${prefix}; give more characters`);
  const { keyId, keyHash, organizationId } = first.caller;
  return changeAs(operatorAuthor(organizationId, clock.now()), parts, async (tx, changed) => {
    await store.lockKey(tx, organizationId, keyHash);
    // The key may have been deleted or rotated since it was found.
    const [key] = await store.keysByHash(tx, [keyHash]);
    if (key === undefined) throw noneBegins(prefix);
    await store.markKeyDeleted(tx, keyId, new Date(clock.now()));
    await changed({
      action: 'key.deleted',
      ...keyResource(key),
      before: keyState(key),
      announce: [KEYS_TOPIC, keyHash],
    });
    return operatorKey(key);
  });
}

function noneBegins(prefix: string): Error {
  return new Error(`no key has a hash that begins with ${prefix}`);
}

function operatorKey({ caller, disabled, createdAt }: store.StoredKey): OperatorKey {
  return {
    hash: caller.keyHash,
    kind: caller.kind,
    name: caller.name,
    label: caller.label,
    disabled,
    createdAt,
    expiresAt: caller.expiresAt === null ? null : new Date(caller.expiresAt),
  };
}

async function theOrganization(db: Queryable): Promise<string> {
  const organizationId = await store.organizationId(db);
  if (organizationId === undefined) throw new Error('there is no organization yet; start the gateway once');
  return organizationId;
}
