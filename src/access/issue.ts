/** Creates inference keys, for management keys and for applications that a user has authorized. */
import { type Author, recordChange } from '../audit/index.ts';
import { GatewayError, invalidField } from '../base/errors.ts';
import { uuidv7 } from '../base/ids.ts';
import type { Announce } from '../storage/change-everywhere.ts';
import type { Queryable } from '../storage/database.ts';
import { insertAlias } from './aliases/store.ts';
import { KEYS_TOPIC } from './authenticator.ts';
import type { KeyKind } from './caller.ts';
import { keyResource, keyState, type NewKeySettings, newKeySettings } from './key.ts';
import type { CreateKeyBody } from './schema.ts';
import * as store from './store.ts';
import { createToken, hashToken, maskToken } from './token.ts';
import { chosenWorkspace } from './workspace-choice.ts';

const LONGEST_NAME = 200;

export interface IssuedKey {
  key: store.StoredKey;
  /** Returned only once. */
  token: string;
}

/**
 * Throws GatewayError 400 for an invalid setting or an unknown workspace or creator, and 409 for an external secret
 * that already belongs to a key.
 * @param request `creatorUserId` is used when the body names no creator
 */
export async function issueKey(
  tx: Queryable,
  announce: Announce,
  { body, creatorUserId }: { body: CreateKeyBody; creatorUserId: string | null },
  now: number,
  author: Author,
): Promise<IssuedKey> {
  const { organizationId } = author;
  const settings = newKeySettings(body, now);
  const maker = body.creator_user_id === undefined ? creatorUserId : body.creator_user_id;
  const workspaceId = await chosenWorkspace(tx, organizationId, body.workspace_id, true);
  if (maker !== null && !(await store.hasMember(tx, organizationId, maker))) {
    throw invalidField('creator_user_id', 'is not a member of the organization');
  }
  const token = createToken('inference');
  const key = await insertKey(
    tx,
    author,
    { kind: 'inference', token, settings, workspaceId, creatorUserId: maker },
    now,
  );
  const { keyHash, keyId } = key.caller;
  const { externalKeyHash } = settings;
  if (externalKeyHash !== null) {
    const alias = { hash: externalKeyHash, keyId, kind: 'external' as const, label: null };
    if (!(await insertAlias(tx, { ...alias, createdAt: key.createdAt, expiresAt: null }))) throw takenSecret();
  }
  // Processes that cached this token as unknown must drop it.
  await announce(KEYS_TOPIC, keyHash, ...(externalKeyHash === null ? [] : [externalKeyHash]));
  return { key, token };
}

/** Creates a management key for a member and returns its hash. The token is discarded: sessions act for the key. */
export async function issueMemberKey(
  tx: Queryable,
  author: Author,
  { userId, name }: { userId: string; name: string },
  now: number,
): Promise<string> {
  const token = createToken('management');
  const settings = newKeySettings({ name: name.slice(0, LONGEST_NAME) }, now);
  await insertKey(tx, author, { kind: 'management', token, settings, workspaceId: null, creatorUserId: userId }, now);
  return hashToken(token);
}

interface NewKey {
  kind: KeyKind;
  /** Its secret, or what another gateway has kept of one. */
  token: string | KnownSecret;
  settings: NewKeySettings;
  /** null for all kinds but inference keys. */
  workspaceId: string | null;
  creatorUserId: string | null;
  /** Default null. */
  internId?: string;
}

/** A secret that only its owner knows. */
interface KnownSecret {
  hash: string;
  label: string;
}

/** Inserts a key of the author's organization and its audit entry. Does not announce it. */
export async function insertKey(
  tx: Queryable,
  author: Author,
  { kind, token, settings, workspaceId, creatorUserId, internId }: NewKey,
  now: number,
): Promise<store.StoredKey> {
  const { hash, label } = typeof token === 'string' ? { hash: hashToken(token), label: maskToken(token) } : token;
  const identity = { id: uuidv7(now), hash, kind, label };
  const owner = { organizationId: author.organizationId, workspaceId, creatorUserId, internId: internId ?? null };
  await store.insertKey(tx, { ...settings, ...identity, ...owner, createdAt: new Date(now) });
  const [key] = await store.keysByHash(tx, [hash]);
  await recordChange(tx, author, { action: 'key.created', ...keyResource(key!), after: keyState(key!) });
  return key!;
}

/** Checks a body for a key that will be created later; throws GatewayError 400 where `issueKey` would. */
export async function checkNewKey(
  db: Queryable,
  organizationId: string,
  body: CreateKeyBody,
  now: number,
): Promise<void> {
  newKeySettings(body, now);
  await chosenWorkspace(db, organizationId, body.workspace_id);
}

function takenSecret(): GatewayError {
  return new GatewayError('invalid_request', 'external.api_key already belongs to a key', {
    path: 'external.api_key',
    status: 409,
  });
}
