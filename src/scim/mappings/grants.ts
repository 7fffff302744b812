/** Brings the memberships of workspaces to what the mappings and groups say now. */
import { uuidv7 } from '../../base/ids.ts';
import type { Queryable } from '../../storage/database.ts';
import * as store from './store.ts';

/**
 * Within a transaction that holds the organization's lock. Memberships given by hand stay in any case.
 * @param scope whose memberships may differ from what they should be
 */
export async function applyGrants(
  tx: Queryable,
  organizationId: string,
  scope: store.Scope,
  nowMs: number,
): Promise<void> {
  if (scope.workspaceIds?.length === 0 || scope.userIds?.length === 0) return;
  await store.takeBack(tx, organizationId, scope);
  await store.updateGranted(tx, organizationId, scope);
  const missing = await store.missingGrants(tx, organizationId, scope);
  if (missing.length === 0) return;
  const grants = missing.map((grant) => ({ ...grant, id: uuidv7(nowMs) }));
  await store.insertGranted(tx, organizationId, grants, new Date(nowMs));
}
