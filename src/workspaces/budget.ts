/** Workspace budgets without I/O. */
import { invalidField } from '../base/errors.ts';
import { type Nano, usdFromNano } from '../base/money.ts';
import type { Interval } from '../spend/index.ts';
import type { BudgetReply } from './schema.ts';
import type { StoredBudget } from './store.ts';

/** Widest first. */
export const BY_WIDTH: readonly Interval[] = ['lifetime', 'monthly', 'weekly', 'daily'];

/**
 * Throws GatewayError 400, naming both budgets, unless `limitNano` for `interval` is below the limits of all wider
 * intervals and above those of all narrower ones.
 * @param others the other budgets of the workspace
 */
export function checkDecreasing(
  interval: Interval,
  limitNano: Nano,
  others: readonly { interval: Interval; limitNano: Nano }[],
): void {
  const width = BY_WIDTH.indexOf(interval);
  for (const other of others) {
    if (other.interval === interval) continue;
    const narrower = BY_WIDTH.indexOf(other.interval) > width;
    if (narrower ? limitNano > other.limitNano : limitNano < other.limitNano) continue;
    throw invalidField(
      'limit_usd',
      `must be ${narrower ? 'above' : 'below'} the ${other.interval} limit of ${usdFromNano(other.limitNano)} USD: ` +
        `limits must decrease as the interval narrows, and ${usdFromNano(limitNano)} USD (${interval}) would not`,
    );
  }
}

export function budgetReply(budget: StoredBudget): BudgetReply {
  return {
    id: budget.id,
    workspace_id: budget.workspaceId,
    limit_usd: usdFromNano(budget.limitNano),
    reset_interval: budget.interval,
    created_at: budget.createdAt.toISOString(),
    updated_at: budget.updatedAt.toISOString(),
  };
}
