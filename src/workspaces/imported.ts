/** Workspaces for the teams of another gateway. */
import type { Changed } from '../audit/index.ts';
import { uuidv7 } from '../base/ids.ts';
import { type Interval, limitFromUsd } from '../spend/index.ts';
import type { Queryable } from '../storage/database.ts';
import { budgetReply } from './budget.ts';
import { budgetResource } from './budget-operations.ts';
import { addWorkspace } from './operations.ts';
import type { CreateWorkspaceBody } from './schema.ts';
import { budgetsOfWorkspace, bumpVersion, findWorkspace, putBudget } from './store.ts';
import { newSettings } from './workspace.ts';

export interface ImportedTeam {
  settings: CreateWorkspaceBody;
  /** Undefined: none. */
  budget: { interval: Interval; limitUsd: number } | undefined;
}

/** The id of its workspace, and whether it is new: a workspace that has the slug already stays as it is. */
export async function importTeam(
  tx: Queryable,
  changed: Changed,
  { organizationId, createdAt }: { organizationId: string; createdAt: Date },
  { settings: body, budget }: ImportedTeam,
): Promise<{ id: string; isNew: boolean }> {
  const settings = newSettings(body, () => false);
  const existing = await findWorkspace(tx, organizationId, { slug: settings.slug });
  if (existing !== undefined) return { id: existing.id, isNew: false };
  const creation = { organizationId, userId: null, settings, createdAt };
  const { id } = await addWorkspace(tx, changed, creation, (name) => name);
  if (budget !== undefined) {
    const { interval, limitUsd } = budget;
    const limitNano = limitFromUsd('limit_usd', limitUsd);
    const budgetId = uuidv7(createdAt.getTime());
    await putBudget(tx, { id: budgetId, workspaceId: id, interval, limitNano, updatedAt: createdAt });
    await bumpVersion(tx, id, undefined);
    const [stored] = await budgetsOfWorkspace(tx, id);
    await changed({ action: 'budget.set', ...budgetResource(id, interval), after: budgetReply(stored!) });
  }
  return { id, isNew: true };
}
