/** Deletes the destinations of a deleted workspace. */
import type { Changes, Queryable } from '../storage/database.ts';
import { TOPIC } from './sealed.ts';
import { deleteDestinationsIn } from './store.ts';

/** For `ended` of workspaces: deleting a workspace also waits for this announcement. */
export function endDestinations(changes: Pick<Changes, 'announce'>) {
  return async (tx: Queryable, workspaceId: string): Promise<void> => {
    await changes.announce(tx, TOPIC, ...(await deleteDestinationsIn(tx, workspaceId)));
  };
}
