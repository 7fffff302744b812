/** Read access to the ledger and its counters. */
import type { Nano } from '../base/money.ts';
import type { Database, Queryable } from '../storage/database.ts';
import { type Budget, INTERVALS, type Interval, windowEnd, windowId } from './budget.ts';
import type { BudgetState, KeyUsage, Viewer } from './contract.ts';
import type { Generation } from './generation.ts';
import { guardrailTotals } from './guardrail-totals.sql.ts';
import { GONE_MS } from './processes/store.ts';
import { decodeRow } from './row.ts';
import { generationById, windowStates } from './store.ts';

/** @param waiting the row, if it is not in the database yet */
export async function findGeneration(
  database: Database,
  id: string,
  viewer: Viewer,
  waiting: Generation | undefined,
): Promise<Generation | undefined> {
  let row = waiting;
  if (row === undefined) {
    const columns = await generationById(database, id);
    if (columns === undefined) return undefined;
    row = decodeRow(columns);
  }
  if (row.organizationId !== viewer.organizationId) return undefined;
  if (viewer.workspaceId !== undefined && row.workspaceId !== viewer.workspaceId) return undefined;
  if (viewer.keyId !== undefined && row.keyId !== viewer.keyId) return undefined;
  return row;
}

export async function readUsage(
  database: Database,
  keyIds: readonly string[],
  nowMs: number,
): Promise<Map<string, KeyUsage>> {
  const ids = keyIds.flatMap((key) => INTERVALS.map((interval) => windowId('key', key, interval, nowMs)));
  const states = await windowStates(database, ids, nowMs - GONE_MS);
  return new Map(
    keyIds.map((key) => {
      const usage = { lifetime: 0n, daily: 0n, weekly: 0n, monthly: 0n };
      const byok: Record<Interval, bigint> = { ...usage };
      for (const interval of INTERVALS) {
        const state = states.get(windowId('key', key, interval, nowMs));
        if (state === undefined) continue;
        usage[interval] = state.spentNano;
        byok[interval] = state.byokNano;
      }
      return [key, { usage, byok }];
    }),
  );
}

export async function readBudgetStates(
  database: Database,
  budgets: readonly Budget[],
  nowMs: number,
): Promise<BudgetState[]> {
  const idOf = (budget: Budget) => windowId(budget.scope, budget.scopeId, budget.interval, nowMs);
  const states = await windowStates(database, budgets.map(idOf), nowMs - GONE_MS);
  const counted = await guardrailTotals(
    database,
    budgets.map((budget) => ({ windowId: idOf(budget), spentBy: budget.spentBy })),
  );
  return budgets.map((budget) => {
    const state = states.get(idOf(budget));
    const spent = counted.get(idOf(budget)) ?? state;
    const spentNano = (spent?.spentNano ?? 0n) + (budget.includeByok ? (spent?.byokNano ?? 0n) : 0n);
    return {
      budget,
      spentNano,
      leasedNano: state?.leasedNano ?? 0n,
      unreturnedNano: state?.unreturnedNano ?? 0n,
      remainingNano: spentNano < budget.limitNano ? budget.limitNano - spentNano : 0n,
      resetsAt: windowEnd(budget.interval, nowMs),
    };
  });
}

/** Total spend from the account balance, as far as it is entered. */
export async function spentOfAccount(db: Queryable, organizationId: string): Promise<Nano> {
  const id = windowId('account', organizationId, 'lifetime', 0);
  return (await windowStates(db, [id], 0)).get(id)?.spentNano ?? 0n;
}
