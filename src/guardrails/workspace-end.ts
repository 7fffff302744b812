/** Deletes the guardrails of a deleted workspace. */
import { GUARDRAILS_TOPIC } from '../access/index.ts';
import type { Changes, Queryable } from '../storage/database.ts';
import { deleteGuardrailsIn } from './store.ts';

/** For `ended` of workspaces: deleting a workspace also waits for this announcement. */
export function endGuardrails(changes: Pick<Changes, 'announce'>) {
  return async (tx: Queryable, workspaceId: string): Promise<void> => {
    // Keys of other workspaces may have these guardrails.
    await changes.announce(tx, GUARDRAILS_TOPIC, ...(await deleteGuardrailsIn(tx, workspaceId)));
  };
}
