/** Chooses the workspace of a control-plane request. */
import { invalidField } from '../base/errors.ts';
import type { Queryable } from '../storage/database.ts';
import * as store from './store.ts';

/**
 * The workspace that `workspace_id` names, or the organization's default one when it is absent. Throws GatewayError 400
 * if it does not exist, or if the default one is needed and was deleted.
 * @param hold locks the workspace against deletion until the transaction ends; for callers about to add to it
 */
export async function chosenWorkspace(
  db: Queryable,
  organizationId: string,
  named: string | undefined,
  hold = false,
): Promise<string> {
  const workspaceId = named ?? (await store.defaultWorkspaceId(db, organizationId));
  if (workspaceId !== undefined && (await store.hasWorkspace(db, organizationId, workspaceId, hold)))
    return workspaceId;
  const problem =
    named === undefined
      ? 'is required, because the default workspace was deleted'
      : 'is not a workspace of the organization';
  throw invalidField('workspace_id', problem);
}
