/** Which workspace a control-plane request means. */
import { invalidField } from '../base/errors.ts';
import type { Queryable } from '../storage/database.ts';
import * as store from './store.ts';

/**
 * The workspace that `workspace_id` names, or the organization's default one when it is absent. Throws GatewayError 400
 * for one that does not exist, and where a default is needed that was deleted (wire/workspaces.md).
 */
export async function chosenWorkspace(
  db: Queryable,
  organizationId: string,
  named: string | undefined,
): Promise<string> {
  if (named !== undefined) {
    if (await store.hasWorkspace(db, organizationId, named)) return named;
    throw invalidField('workspace_id', 'names no workspace of the organization');
  }
  const workspaceId = await store.defaultWorkspaceId(db, organizationId);
  if (workspaceId === undefined) throw invalidField('workspace_id', 'is needed: the default workspace was deleted');
  return workspaceId;
}
