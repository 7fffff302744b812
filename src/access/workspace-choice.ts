/** Which workspace a control-plane request means. */
import { invalidField } from '../base/errors.ts';
import type { Queryable } from '../storage/database.ts';
import * as store from './store.ts';

/**
 * The workspace that `workspace_id` names, or the organization's default one when it is absent. Throws GatewayError 400
 * for one that does not exist, and where a default is needed that was deleted (wire/workspaces.md).
 * @param hold keeps it from being deleted until the transaction ends; for what is about to be put into it
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
    named === undefined ? 'is needed: the default workspace was deleted' : 'names no workspace of the organization';
  throw invalidField('workspace_id', problem);
}
