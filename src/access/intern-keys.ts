/**
 * The API key of an intern: an inference key that counts, and is limited, as any other, but is confined to its intern. No one
 * gets its first secret. Each start of the intern's sandbox makes one, which is held in memory only and ends with the sandbox.
 */
import type { Author, Changed } from '../audit/index.ts';
import type { Announce } from '../storage/change-everywhere.ts';
import type { Queryable } from '../storage/database.ts';
import { deleteSandboxSecret, deleteSandboxSecrets, insertAlias } from './aliases/store.ts';
import { KEYS_TOPIC } from './authenticator.ts';
import type { KeyFacts } from './caller.ts';
import { insertKey } from './issue.ts';
import { keyResource, keyState, newKeySettings } from './key.ts';
import { internKey, markKeyDeleted } from './store.ts';
import { createToken, hashToken } from './token.ts';

interface InternKeyOwner {
  internId: string;
  /** Of the intern, for lists of keys. */
  name: string;
  workspaceId: string;
  creatorUserId: string | null;
}

/** In the transaction that makes the intern. */
export async function issueInternKey(
  tx: Queryable,
  { internId, name, workspaceId, creatorUserId }: InternKeyOwner,
  now: number,
  author: Author,
): Promise<void> {
  const settings = newKeySettings({ name: `Intern ${name}` }, now);
  const token = createToken('inference');
  await insertKey(tx, author, { kind: 'inference', token, settings, workspaceId, creatorUserId, internId }, now);
}

/** In the transaction that ends the intern. Does nothing if the key was deleted before. */
export async function endInternKey(tx: Queryable, changed: Changed, internId: string, now: Date): Promise<void> {
  const key = await internKey(tx, internId);
  if (key === undefined) return;
  const secrets = await deleteSandboxSecrets(tx, key.caller.keyId);
  await markKeyDeleted(tx, key.caller.keyId, now);
  await changed({
    ...{ action: 'key.deleted', ...keyResource(key), before: keyState(key) },
    announce: [KEYS_TOPIC, key.caller.keyHash, ...secrets],
  });
}

/**
 * A secret for a sandbox that starts. Those of earlier sandboxes of the intern end.
 * @returns undefined if the intern's key was deleted
 */
export async function startSandboxSecret(
  tx: Queryable,
  announce: Announce,
  internId: string,
  now: Date,
): Promise<{ token: string; key: KeyFacts } | undefined> {
  const key = await internKey(tx, internId);
  if (key === undefined) return undefined;
  const { caller } = key;
  const token = createToken('inference');
  const former = await deleteSandboxSecrets(tx, caller.keyId);
  const hash = hashToken(token);
  const alias = { hash, keyId: caller.keyId, kind: 'sandbox' as const, label: null, createdAt: now, expiresAt: null };
  await insertAlias(tx, alias);
  await announce(KEYS_TOPIC, hash, ...former);
  return { token, key: caller };
}

/** When its sandbox has stopped. A later sandbox of the intern keeps its own. */
export async function endSandboxSecret(tx: Queryable, announce: Announce, token: string): Promise<void> {
  const hash = hashToken(token);
  if (await deleteSandboxSecret(tx, hash)) await announce(KEYS_TOPIC, hash);
}
