/** Deletes the vaults of a deleted workspace. */
import type { Queryable } from '../storage/database.ts';
import { deleteVaultsIn } from './store.ts';

/** For `ended` of workspaces. */
export function endVaults() {
  return (tx: Queryable, workspaceId: string): Promise<void> => deleteVaultsIn(tx, workspaceId);
}
