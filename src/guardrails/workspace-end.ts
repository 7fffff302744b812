/** A workspace that ends takes its guardrails with it (wire/workspaces.md). */
import { GUARDRAILS_TOPIC } from '../access/index.ts';
import type { Changes, Queryable } from '../storage/database.ts';
import { deleteGuardrailsIn } from './store.ts';

/** For the workspaces' `ended`: who waits for the end of the workspace waits for what is announced here too. */
export function endGuardrails(changes: Pick<Changes, 'announce'>) {
  return async (tx: Queryable, workspaceId: string): Promise<void> => {
    // Keys of other workspaces may have had them.
    await changes.announce(tx, GUARDRAILS_TOPIC, ...(await deleteGuardrailsIn(tx, workspaceId)));
  };
}
