/** Making an inference key, whoever asks for it: a management key, or an application that a person has let in. */
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

export interface IssuedKey {
  key: store.StoredKey;
  /** Told this once. */
  token: string;
}

/**
 * Throws GatewayError 400 for a setting that is wrong, a workspace or a maker that there is not, and 409 for a secret of a
 * partner that stands for a key already.
 * @param creatorUserId for a body that says nothing about it
 */
export async function issueKey(
  tx: Queryable,
  announce: Announce,
  body: CreateKeyBody,
  creatorUserId: string | null,
  now: number,
  author: Author,
): Promise<IssuedKey> {
  const { organizationId } = author;
  const settings = newKeySettings(body, now);
  const maker = body.creator_user_id === undefined ? creatorUserId : body.creator_user_id;
  const workspaceId = await chosenWorkspace(tx, organizationId, body.workspace_id, true);
  if (maker !== null && !(await store.hasMember(tx, organizationId, maker))) {
    throw invalidField('creator_user_id', 'names no member of the organization');
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
  // A process that met this token before it existed would go on refusing it.
  await announce(KEYS_TOPIC, keyHash, ...(externalKeyHash === null ? [] : [externalKeyHash]));
  return { key, token };
}

export interface NewKey {
  kind: KeyKind;
  /** Its secret. */
  token: string;
  settings: NewKeySettings;
  /** null for all but inference keys. */
  workspaceId: string | null;
  creatorUserId: string | null;
}

/** Inserts a key of the author's organization and enters it in the audit log. Processes are not told of it. */
export async function insertKey(
  tx: Queryable,
  author: Author,
  { kind, token, settings, workspaceId, creatorUserId }: NewKey,
  now: number,
): Promise<store.StoredKey> {
  const hash = hashToken(token);
  const identity = { id: uuidv7(now), hash, kind, label: maskToken(token) };
  const place = { organizationId: author.organizationId, workspaceId, creatorUserId };
  await store.insertKey(tx, { ...settings, ...identity, ...place, createdAt: new Date(now) });
  const [key] = await store.keysByHash(tx, [hash]);
  await recordChange(tx, author, { action: 'key.created', ...keyResource(key!), after: keyState(key!) });
  return key!;
}

/** Throws GatewayError 400 for what `issueKey` would refuse, where the key is made later. */
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
  return new GatewayError('invalid_request', 'external.api_key stands for a key already', {
    path: 'external.api_key',
    status: 409,
  });
}
