/** Keys that another gateway has issued: it stored the SHA-256 of their tokens, as this one does, so clients keep them. */
import type { Author } from '../audit/index.ts';
import type { Announce } from '../storage/change-everywhere.ts';
import type { Queryable } from '../storage/database.ts';
import { KEYS_TOPIC } from './authenticator.ts';
import { insertKey } from './issue.ts';
import { newKeySettings } from './key.ts';
import type { CreateKeyBody } from './schema.ts';
import { isKnownHash } from './store.ts';

export interface ImportedKey {
  hash: string;
  /** Masked token. */
  label: string;
  workspaceId: string;
  settings: Omit<CreateKeyBody, 'workspace_id' | 'creator_user_id'>;
}

/** False if the key is here already. @throws GatewayError 400 for an invalid setting */
export async function importKey(
  tx: Queryable,
  author: Author,
  announce: Announce,
  { hash, label, workspaceId, settings }: ImportedKey,
): Promise<boolean> {
  if (await isKnownHash(tx, hash)) return false;
  const key = { kind: 'inference', token: { hash, label }, workspaceId, creatorUserId: null } as const;
  await insertKey(tx, author, { ...key, settings: newKeySettings(settings, author.at) }, author.at);
  // Processes that cached this token as unknown must drop it.
  await announce(KEYS_TOPIC, hash);
  return true;
}
