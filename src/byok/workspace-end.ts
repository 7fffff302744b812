/** A workspace that ends takes its own keys with it. */
import type { Changes, Queryable } from '../storage/database.ts';
import { TOPIC } from './sealed.ts';
import { deleteOwnKeysIn } from './store.ts';

/** For the workspaces' `ended`: who waits for the end of the workspace waits for what is announced here too. */
export function endOwnKeys(changes: Pick<Changes, 'announce'>) {
  return async (tx: Queryable, workspaceId: string): Promise<void> => {
    await changes.announce(tx, TOPIC, ...(await deleteOwnKeysIn(tx, workspaceId)));
  };
}
