/** Updates workspace memberships to match the current mappings and groups. */
import { uuidv7 } from '../../base/ids.ts';
import type { Queryable } from '../../storage/database.ts';
import * as store from './store.ts';

/**
 * Call it in a transaction that holds the organization's lock. Manual memberships always stay.
 * @param scope memberships that may be out of date
 */
export async function applyGrants(
  tx: Queryable,
  organizationId: string,
  scope: store.Scope,
  nowMs: number,
): Promise<void> {
  if (scope.workspaceIds?.length === 0 || scope.userIds?.length === 0) return;
  // Compare here: the server has poor statistics of tables that just grew, and would compare every row with every
  // other.
  const wanted = byMembership(await store.wantedGrants(tx, organizationId, scope));
  const held = byMembership(await store.heldGrants(tx, organizationId, scope));
  const removed = [...held].flatMap(([key, grant]) => (wanted.has(key) ? [] : [grant]));
  const changed = [...wanted].flatMap(([key, grant]) => (held.get(key)?.role === grant.role ? [] : [grant]));
  if (removed.length > 0) await store.takeBack(tx, removed);
  if (changed.length === 0) return;
  const grants = changed.map((grant) => ({ ...grant, id: uuidv7(nowMs) }));
  await store.putGrants(tx, organizationId, grants, new Date(nowMs));
}

function byMembership(grants: readonly store.Grant[]): Map<string, store.Grant> {
  return new Map(grants.map((grant) => [`${grant.workspaceId}/${grant.userId}`, grant]));
}
