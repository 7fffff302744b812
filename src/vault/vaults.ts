/** Vaults as a whole: made with their owner or at the first write, and deleted with it. */
import { uuidv7 } from '../base/ids.ts';
import type { Sealing } from '../sealing/index.ts';
import type { Changes, Queryable } from '../storage/database.ts';
import * as store from './store.ts';
import { newDataKey } from './vault-key.ts';

/** Announced with the id of a vault when its secrets change. */
export const VAULTS_TOPIC = 'vaults';

/** A vault that is not stored yet, for `store.insertVault`. Not within a transaction. @throws SealingError */
export async function newVault(sealing: Sealing, owner: store.VaultOwner, createdAt: Date): Promise<store.Vault> {
  const { type: ownerType, id: ownerId, organizationId, workspaceId } = owner;
  const id = uuidv7(createdAt.getTime());
  const dataKey = await newDataKey(sealing, id);
  return { id, organizationId, workspaceId, ownerType, ownerId, dataKey, keyVersion: 1, createdAt };
}

/** For `ended` of workspaces: their own vaults, and those of their interns. */
export function endVaults(changes: Pick<Changes, 'announce'>) {
  return async (tx: Queryable, workspaceId: string): Promise<void> => {
    await changes.announce(tx, VAULTS_TOPIC, ...(await store.deleteVaultsIn(tx, workspaceId)));
  };
}

/** Deletes the vault of a deleted intern. */
export async function endInternVault(
  changes: Pick<Changes, 'announce'>,
  tx: Queryable,
  internId: string,
): Promise<void> {
  const id = await store.deleteVaultOf(tx, { type: 'intern', id: internId });
  if (id !== undefined) await changes.announce(tx, VAULTS_TOPIC, id);
}
