/** Deletes the BYOK credentials of a deleted workspace. */
import type { Changes, Queryable } from '../storage/database.ts';
import { TOPIC } from './sealed.ts';
import { deleteOwnKeysIn } from './store.ts';

/** For `ended` of workspaces: deleting a workspace also waits for this announcement. */
export function endOwnKeys(changes: Pick<Changes, 'announce'>) {
  return async (tx: Queryable, workspaceId: string): Promise<void> => {
    await changes.announce(tx, TOPIC, ...(await deleteOwnKeysIn(tx, workspaceId)));
  };
}
