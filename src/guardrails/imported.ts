/** Guardrails for the model lists of keys and teams of another gateway. */
import type { Changed } from '../audit/index.ts';
import { uuidv7 } from '../base/ids.ts';
import type { Queryable } from '../storage/database.ts';
import { defaultGuardrailId } from '../workspaces/index.ts';
import { assignKeys } from './assignments/store.ts';
import { changedSettings, guardrailResource } from './guardrail.ts';
import { addGuardrail, UNSET } from './operations.ts';

interface ModelList {
  organizationId: string;
  workspaceId: string;
  createdAt: Date;
  name: string;
  allowedModels: readonly string[];
  /** The keys that may use only these models; `all`: every key of the workspace, which is new. */
  keys: readonly string[] | 'all';
}

/** The keys must have been created in the same transaction, so that no process can have cached their rules. */
export async function importModelList(
  tx: Queryable,
  changed: Changed,
  { organizationId, workspaceId, createdAt, name, allowedModels, keys }: ModelList,
): Promise<void> {
  const settings = changedSettings({ ...UNSET, name }, { allowed_models: [...allowedModels] });
  const place = { organizationId, workspaceId, createdAt };
  const whole = keys === 'all' ? defaultGuardrailId(workspaceId) : undefined;
  const guardrail = await addGuardrail(tx, changed, place, settings, whole);
  if (keys === 'all') return;
  const ids = keys.map(() => uuidv7(createdAt.getTime()));
  await assignKeys(tx, keys, ids, { organizationId, guardrailId: guardrail.id, assignedBy: null, createdAt });
  const after = { key_hashes: keys };
  await changed({ action: 'guardrail.keys_assigned', ...guardrailResource(guardrail), after });
}
