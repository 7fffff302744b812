/** Interns as `vault/` knows them. */
import { notFound } from '../base/errors.ts';
import { isUuid } from '../base/ids.ts';
import type { Queryable } from '../storage/database.ts';
import type { HeldOwner } from '../vault/index.ts';
import * as store from './store.ts';

const INTERN = 'intern with this id in the workspace';

/**
 * The owner of an intern's vault, and the vault that it borrows.
 * @throws GatewayError 404 if the workspace has no intern with this id
 */
export async function vaultsOfIntern(
  db: Queryable,
  workspaceId: string,
  id: string,
): Promise<{ held: HeldOwner; ownVaultId: string | null; borrowedVaultId: string | null }> {
  const intern = isUuid(id) ? await store.findIntern(db, workspaceId, id.toLowerCase()) : undefined;
  if (intern === undefined) throw notFound(INTERN);
  const { organizationId, vaultId, attachedVaultId } = intern;
  return {
    held: {
      owner: { type: 'intern', id: intern.id, organizationId, workspaceId },
      async hold(tx) {
        if (!(await store.holdIntern(tx, intern.id))) throw notFound(INTERN);
      },
    },
    ownVaultId: vaultId,
    borrowedVaultId: attachedVaultId,
  };
}
