/** Reads remaining amounts: the budgets of the calling key and the account balance. */
import { type Nano, usdFromNano } from '../base/money.ts';
import { ANY_KEY, MANAGEMENT } from '../http/access-rule.ts';
import { ok } from '../http/contract.ts';
import type { Operation } from '../http/operation.ts';
import { type Budget, MAX_LIMIT_USD, windowStart } from './budget.ts';
import type { BudgetState, Spend } from './contract.ts';
import { BudgetsEnvelope, CreditsEnvelope } from './schema.ts';

interface SpendOperationParts<C> {
  /** Called while handling a request. */
  spend(): Spend;
  /** Every budget that applies to a request of this caller. */
  budgetsOf(caller: C): Promise<readonly Budget[]>;
  /** null means unlimited. */
  balanceNano(): Promise<Nano | null>;
}

export function spendOperations<C extends { organizationId: string }>(parts: SpendOperationParts<C>): Operation<C>[] {
  return [listBudgets(parts), getCredits(parts)];
}

function listBudgets<C>(parts: SpendOperationParts<C>): Operation<C> {
  return {
    id: 'listBudgets',
    method: 'GET',
    path: '/budget',
    summary: 'List all budgets that limit the calling key, with their spent and reserved amounts',
    tag: 'Budgets',
    access: ANY_KEY,
    replies: ok('The budgets, from the account to the key', BudgetsEnvelope),
    async handle(exchange) {
      const states = await parts.spend().stateOf(await parts.budgetsOf(exchange.caller));
      exchange.reply(200, { data: states.map(stateReply) });
    },
  };
}

function stateReply(state: BudgetState) {
  const { budget, spentNano, leasedNano, unreturnedNano, remainingNano, resetsAt } = state;
  const start = resetsAt === null ? null : windowStart(budget.interval, resetsAt - 1);
  return {
    scope: budget.scope,
    id: budget.scopeId,
    reset_interval: budget.interval,
    limit_usd: usdFromNano(budget.limitNano),
    spent_usd: usdFromNano(spentNano),
    reserved_usd: usdFromNano(leasedNano),
    unreturned_usd: usdFromNano(unreturnedNano),
    remaining_usd: usdFromNano(remainingNano),
    available_usd: usdFromNano(leasedNano < remainingNano ? remainingNano - leasedNano : 0n),
    include_byok: budget.includeByok,
    window_start: start === null ? null : new Date(start).toISOString(),
    resets_at: resetsAt === null ? null : new Date(resetsAt).toISOString(),
  };
}

function getCredits<C extends { organizationId: string }>(parts: SpendOperationParts<C>): Operation<C> {
  return {
    id: 'getCredits',
    method: 'GET',
    path: '/credits',
    summary: "The account's balance and all that was ever spent of it",
    tag: 'Budgets',
    access: MANAGEMENT,
    replies: ok('US dollars', CreditsEnvelope),
    async handle(exchange) {
      const balanceNano = await parts.balanceNano();
      const [state] = await parts.spend().stateOf([
        {
          scope: 'account',
          scopeId: exchange.caller.organizationId,
          interval: 'lifetime',
          limitNano: balanceNano ?? 0n,
          includeByok: false,
        },
      ]);
      exchange.reply(200, {
        data: {
          total_credits: balanceNano === null ? MAX_LIMIT_USD : usdFromNano(balanceNano),
          total_usage: usdFromNano(state!.spentNano),
          unlimited: balanceNano === null,
        },
      });
    },
  };
}
