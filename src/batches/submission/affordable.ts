/**
 * Checks whether a batch can be paid for at all. Nothing is reserved: budgets and limits apply to each item when it
 * runs. A batch is refused only if the budgets could not even pay for its prompts, estimated as low as possible, so
 * that no batch is refused that could have run.
 */
import type { Caller } from '../../access/index.ts';
import { GatewayError } from '../../base/errors.ts';
import { type Nano, nanoFromPrice, type Price } from '../../base/money.ts';
import { budgetsOf, type InferenceParts, type LeastPrice, leastTokens } from '../../inference/index.ts';
import { type BudgetState, type Refusal, refusalError } from '../../spend/index.ts';

/** Requests of one model: their bytes together, and what a prompt token costs at least. */
export interface PromptSum {
  bytes: number;
  price: LeastPrice;
}

type Parts = Pick<InferenceParts, 'refresh' | 'spend' | 'accountBalanceNano'>;

async function statesOf(caller: Caller, parts: Parts): Promise<BudgetState[]> {
  await parts.refresh?.();
  return parts.spend.stateOf(budgetsOf(caller, parts.accountBalanceNano()));
}

/** Before the body is read. @throws GatewayError 402 if a budget of the key is exhausted */
export async function refuseWithoutBudget(caller: Caller, parts: Parts): Promise<void> {
  const empty = (await statesOf(caller, parts)).find(({ remainingNano }) => remainingNano <= 0n);
  if (empty === undefined) return;
  const { scope } = empty.budget;
  throw new GatewayError(
    'payment_required',
    `the ${scope === 'account' ? 'balance' : 'budget'} of the ${scope} is exhausted`,
  );
}

/** @param until ms; windows of budgets that end before it count anew @throws GatewayError 402 */
export async function refuseUnaffordable(
  prompts: readonly PromptSum[],
  caller: Caller,
  parts: Parts,
  until: number,
): Promise<void> {
  const refusal = refusalOf(await statesOf(caller, parts), prompts, until);
  if (refusal !== undefined) throw refusalError(refusal, 'the prompts of this batch cost at least');
}

/** The refusal of the first budget that cannot pay for the prompts until then. */
export function refusalOf(
  states: readonly BudgetState[],
  prompts: readonly PromptSum[],
  until: number,
): Refusal | undefined {
  const least: LeastPrice = { credit: sumOf(prompts, 'credit'), any: sumOf(prompts, 'any') };
  for (const { budget, remainingNano, spentNano, resetsAt } of states) {
    const neededNano: Nano = nanoFromPrice(budget.includeByok ? least.any : least.credit);
    // No window is shorter than the time that a batch has, so at most one more begins in it.
    const renewedNano = resetsAt !== null && resetsAt < until ? budget.limitNano : 0n;
    const leftNano = remainingNano + renewedNano;
    if (neededNano > leftNano) return { refused: true, budget, neededNano, leftNano, spentNano, resetsAt };
  }
  return undefined;
}

function sumOf(prompts: readonly PromptSum[], kind: keyof LeastPrice): Price {
  return prompts.reduce((sum, { bytes, price }) => sum + BigInt(leastTokens(bytes)) * price[kind], 0n);
}
