/** Deletes the interns of a deleted workspace. */
import type { Changes, Queryable } from '../storage/database.ts';
import { INTERNS_TOPIC } from './change-intern.ts';
import { deleteInternsIn } from './store.ts';

/** For `ended` of workspaces, before that of vaults. */
export function endInterns(changes: Pick<Changes, 'announce'>) {
  return async (tx: Queryable, workspaceId: string): Promise<void> => {
    await changes.announce(tx, INTERNS_TOPIC, ...(await deleteInternsIn(tx, workspaceId)));
  };
}
