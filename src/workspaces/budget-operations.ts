/** The operations on workspace budgets. They never change recorded spend. */
import { type Caller, WORKSPACES_TOPIC } from '../access/index.ts';
import { authorOf, changeAs } from '../audit/index.ts';
import { GatewayError } from '../base/errors.ts';
import { uuidv7 } from '../base/ids.ts';
import { MANAGEMENT } from '../http/access-rule.ts';
import { ok } from '../http/contract.ts';
import type { Exchange, Operation } from '../http/operation.ts';
import { type Interval, limitFromUsd } from '../spend/index.ts';
import { BY_WIDTH, budgetReply, checkDecreasing } from './budget.ts';
import { existingWorkspace } from './lookup.ts';
import type { WorkspaceOperationParts } from './operations.ts';
import * as schema from './schema.ts';
import * as store from './store.ts';

type Parts = Pick<WorkspaceOperationParts, 'database' | 'changes' | 'clock' | 'spendEntered'>;

export function budgetOperations(parts: Parts): Operation<Caller>[] {
  return [listBudgets(parts), getBudget(parts), putBudget(parts), deleteBudget(parts)];
}

function listBudgets(parts: Parts): Operation<Caller> {
  return {
    id: 'listWorkspaceBudgets',
    method: 'GET',
    path: '/workspaces/{workspace_ref}/budgets',
    summary: 'List the budgets of a workspace, widest interval first',
    tag: 'Workspaces',
    access: MANAGEMENT,
    params: schema.BudgetsParams,
    replies: ok('At most one budget per interval', schema.BudgetListEnvelope),
    async handle(exchange) {
      const workspace = await existingWorkspace(parts.database, exchange.caller.organizationId, referenceOf(exchange));
      const budgets = await store.budgetsOfWorkspace(parts.database, workspace.id);
      budgets.sort((a, b) => BY_WIDTH.indexOf(a.interval) - BY_WIDTH.indexOf(b.interval));
      exchange.reply(200, {
        data: budgets.map(budgetReply),
        include_byok_in_budgets: workspace.includeByokInBudgets,
      });
    },
  };
}

function getBudget(parts: Parts): Operation<Caller> {
  return {
    id: 'getWorkspaceBudget',
    method: 'GET',
    path: '/workspaces/{workspace_ref}/budgets/{interval}',
    summary: 'Get the budget of one interval',
    tag: 'Workspaces',
    access: MANAGEMENT,
    params: schema.BudgetParams,
    replies: ok('The budget', schema.BudgetEnvelope),
    async handle(exchange) {
      const workspace = await existingWorkspace(parts.database, exchange.caller.organizationId, referenceOf(exchange));
      const interval = intervalOf(exchange);
      const budget = ofInterval(await store.budgetsOfWorkspace(parts.database, workspace.id), interval);
      if (budget === undefined) throw new GatewayError('not_found', `The workspace has no ${interval} budget.`);
      exchange.reply(200, { data: budgetReply(budget), include_byok_in_budgets: workspace.includeByokInBudgets });
    },
  };
}

function putBudget(parts: Parts): Operation<Caller> {
  return {
    id: 'upsertWorkspaceBudget',
    method: 'PUT',
    path: '/workspaces/{workspace_ref}/budgets/{interval}',
    summary: 'Set the budget of one interval; limits must decrease from lifetime to monthly, weekly and daily',
    tag: 'Workspaces',
    access: MANAGEMENT,
    params: schema.BudgetParams,
    body: { schema: schema.UpsertBudgetSchema },
    replies: ok('The budget. It is enforced in every process', schema.BudgetEnvelope),
    async handle(exchange) {
      const body = exchange.body as schema.UpsertBudgetBody;
      const interval = intervalOf(exchange);
      const limitNano = limitFromUsd('limit_usd', body.limit_usd);
      const { budget, resetsUsage, includeByok } = await changeAs(authorOf(exchange), parts, async (tx, changed) => {
        const workspace = await existingWorkspace(tx, exchange.caller.organizationId, referenceOf(exchange), true);
        const before = await store.budgetsOfWorkspace(tx, workspace.id);
        checkDecreasing(interval, limitNano, before);
        const updatedAt = new Date(parts.clock.now());
        const id = uuidv7(updatedAt.getTime());
        await store.putBudget(tx, { id, workspaceId: workspace.id, interval, limitNano, updatedAt });
        await store.bumpVersion(tx, workspace.id, body.include_byok_in_budgets);
        const budget = ofInterval(await store.budgetsOfWorkspace(tx, workspace.id), interval)!;
        const earlier = ofInterval(before, interval);
        const includeByok = body.include_byok_in_budgets ?? workspace.includeByokInBudgets;
        await changed({
          action: 'budget.set',
          ...budgetResource(workspace.id, interval),
          before: earlier && { ...budgetReply(earlier), include_byok_in_budgets: workspace.includeByokInBudgets },
          after: { ...budgetReply(budget), include_byok_in_budgets: includeByok },
          announce: [WORKSPACES_TOPIC, workspace.id],
        });
        const resetsUsage = earlier === undefined || includeByok !== workspace.includeByokInBudgets;
        return { budget, resetsUsage, includeByok };
      });
      // Leases cover neither spend from before the window was limited, nor earlier BYOK spend.
      if (resetsUsage) await parts.spendEntered();
      exchange.reply(200, { data: budgetReply(budget), include_byok_in_budgets: includeByok });
    },
  };
}

function deleteBudget(parts: Parts): Operation<Caller> {
  return {
    id: 'deleteWorkspaceBudget',
    method: 'DELETE',
    path: '/workspaces/{workspace_ref}/budgets/{interval}',
    summary: 'Delete the budget of one interval, if there is one',
    tag: 'Workspaces',
    access: MANAGEMENT,
    params: schema.BudgetParams,
    replies: ok('The budget does not exist any more', schema.DeletedEnvelope),
    async handle(exchange) {
      await changeAs(authorOf(exchange), parts, async (tx, changed) => {
        const workspace = await existingWorkspace(tx, exchange.caller.organizationId, referenceOf(exchange), true);
        const interval = intervalOf(exchange);
        const budget = ofInterval(await store.budgetsOfWorkspace(tx, workspace.id), interval);
        if (budget === undefined) return;
        await store.deleteBudget(tx, workspace.id, interval);
        await store.bumpVersion(tx, workspace.id, undefined);
        await changed({
          action: 'budget.deleted',
          ...budgetResource(workspace.id, interval),
          before: budgetReply(budget),
          announce: [WORKSPACES_TOPIC, workspace.id],
        });
      });
      exchange.reply(200, { deleted: true });
    },
  };
}

function ofInterval(budgets: readonly store.StoredBudget[], interval: Interval): store.StoredBudget | undefined {
  return budgets.find((one) => one.interval === interval);
}

/** The resource of an audit entry about a budget. */
export function budgetResource(workspaceId: string, interval: Interval) {
  return { resourceType: 'budget', resourceId: `${workspaceId}/${interval}`, workspaceId };
}

function referenceOf(exchange: Exchange<Caller>): string {
  return exchange.params['workspace_ref']!;
}

/** The schema guarantees a valid interval. */
function intervalOf(exchange: Exchange<Caller>): Interval {
  return exchange.params['interval'] as Interval;
}
