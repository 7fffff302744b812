/** Finds the workspace that a path names. */
import { orNotFound } from '../base/errors.ts';
import type { Queryable } from '../storage/database.ts';
import { findWorkspace, type StoredWorkspace } from './store.ts';
import { readReference } from './workspace.ts';

/**
 * @param reference id or slug
 * @param hold locks the workspace until the transaction ends
 * @throws GatewayError 404
 */
export async function existingWorkspace(
  db: Queryable,
  organizationId: string,
  reference: string,
  hold = false,
): Promise<StoredWorkspace> {
  const found = await findWorkspace(db, organizationId, readReference(reference), hold);
  return orNotFound(found, 'workspace with this id or slug');
}
