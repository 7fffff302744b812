/** Creates the first rows of an installation. */
import { operatorAuthor } from '../audit/index.ts';
import type { Clock } from '../base/clock.ts';
import { uuidv7 } from '../base/ids.ts';
import type { Database } from '../storage/database.ts';
import type { KeyKind } from './caller.ts';
import { insertKey } from './issue.ts';
import { newKeySettings } from './key.ts';
import * as store from './store.ts';
import { createToken, isToken, MAX_TOKEN_LENGTH } from './token.ts';

interface BootstrapParts {
  database: Database;
  clock: Clock;
}

/** Tokens chosen by the operator; an absent one is generated. */
export interface ChosenTokens {
  management?: string;
  inference?: string;
}

/** A key of the first start. Its token is stored nowhere and cannot be shown again. */
export interface FirstKey {
  kind: KeyKind;
  token: string;
  /** False when the operator chose it, so it need not be shown. */
  generated: boolean;
}

/**
 * Creates the organization with its owner, its default workspace and one key of each kind. Returns null, and ignores
 * `chosen`, if they exist. Of several processes that start at once exactly one gets the keys. Throws a RangeError for a
 * chosen token that is not valid.
 *
 * @param show shows the keys to the operator; called before the commit. A process killed in between has shown keys that
 *   do not exist, and the next start makes new ones; in the other order the keys would be lost for good.
 */
export async function bootstrap(
  parts: BootstrapParts,
  chosen: ChosenTokens = {},
  show: (keys: FirstKey[]) => void = () => {},
): Promise<FirstKey[] | null> {
  const { database, clock } = parts;
  if ((await store.organizationId(database)) !== undefined) return null;
  const keys = [firstKey('management', chosen.management), firstKey('inference', chosen.inference)];
  if (chosen.management !== undefined && chosen.management === chosen.inference) {
    throw new RangeError('the management key and the inference key must differ');
  }
  return database.transaction(async (tx) => {
    await store.lockOrganizations(tx);
    if ((await store.organizationId(tx)) !== undefined) return null;
    const createdAt = new Date(clock.now());
    const organizationId = prefixedId('org', createdAt);
    const userId = prefixedId('user', createdAt);
    const workspaceId = uuidv7(createdAt.getTime());
    await store.insertOrganization(tx, {
      organizationId,
      organizationName: 'Organization',
      workspaceId,
      workspaceSlug: 'default',
      workspaceName: 'Default workspace',
      userId,
      userName: 'Owner',
      createdAt,
    });
    const now = createdAt.getTime();
    for (const { kind, token } of keys) {
      const settings = newKeySettings({ name: `First ${kind} key` }, now);
      const owner = { workspaceId: kind === 'inference' ? workspaceId : null, creatorUserId: userId };
      await insertKey(tx, operatorAuthor(organizationId, now), { kind, token, settings, ...owner }, now);
    }
    // No announcement: no process serves before this is committed.
    show(keys);
    return keys;
  });
}

function firstKey(kind: KeyKind, chosen: string | undefined): FirstKey {
  if (chosen === undefined) return { kind, token: createToken(kind), generated: true };
  if (!isToken(chosen)) {
    throw new RangeError(`the ${kind} key must be 1 to ${MAX_TOKEN_LENGTH} visible ASCII characters without spaces`);
  }
  return { kind, token: chosen, generated: false };
}

/** Ids of users and organizations: `user_` or `org_` and 32 hexadecimal digits. */
function prefixedId(prefix: 'org' | 'user', createdAt: Date): string {
  return `${prefix}_${uuidv7(createdAt.getTime()).replaceAll('-', '')}`;
}
