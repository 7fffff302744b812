/**
 * Keys as the operator at the machine handles them (`gatehouse keys`): of every kind, and without a key of their own,
 * which is the way back in for one who lost the management key. No operation offers this.
 */
import { operatorAuthor, recordChange } from '../audit/index.ts';
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

/** A key as a list of them shows it. */
export interface OperatorKey {
  hash: string;
  kind: KeyKind;
  name: string;
  label: string;
  disabled: boolean;
  createdAt: Date;
  expiresAt: Date | null;
}

/** What may be said of a new key; the rest is as in `POST /keys` without it. */
export type OperatorKeyBody = Pick<CreateKeyBody, 'name' | 'limit' | 'limit_reset' | 'expires_at'>;

const SHORTEST_PREFIX = 8;

/**
 * Makes a key that belongs to the organization itself and returns its token, which nobody will tell again. Throws
 * GatewayError 400 for a wrong setting, and an Error before the first start.
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
    if (workspaceId === undefined) throw new Error('the default workspace was deleted; make the key with POST /keys');
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
 * Revokes the one key whose hash begins with `hashPrefix` (8 characters at least), in every process. Throws an Error
 * when none or several begin so.
 */
export async function revokeOperatorKey(parts: OperatorKeysParts, hashPrefix: string): Promise<OperatorKey> {
  const prefix = hashPrefix.toLowerCase();
  if (!/^[0-9a-f]+$/.test(prefix) || prefix.length < SHORTEST_PREFIX) {
    throw new Error(`name the key by its hash, or by the first ${SHORTEST_PREFIX} characters of it or more`);
  }
  const { database, clock } = parts;
  const keys = await store.allKeys(database, await theOrganization(database));
  const found = keys.filter(({ caller }) => caller.keyHash.startsWith(prefix));
  const [first] = found;
  if (first === undefined) throw noneBegins(prefix);
  if (found.length > 1) throw new Error(`${found.length} keys have a hash that begins with ${prefix}; give more of it`);
  const { keyId, keyHash, organizationId } = first.caller;
  return changeEverywhere(parts, async (tx, announce) => {
    await store.lockKey(tx, organizationId, keyHash);
    // It may have gone since it was found, or have got another secret.
    const [key] = await store.keysByHash(tx, [keyHash]);
    if (key === undefined) throw noneBegins(prefix);
    await store.markKeyDeleted(tx, keyId, new Date(clock.now()));
    const deleted = { action: 'key.deleted', ...keyResource(key), before: keyState(key) } as const;
    await recordChange(tx, operatorAuthor(organizationId, clock.now()), deleted);
    await announce(KEYS_TOPIC, keyHash);
    return operatorKey(key);
  });
}

function noneBegins(prefix: string): Error {
  return new Error(`there is no key whose hash begins with ${prefix}`);
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
