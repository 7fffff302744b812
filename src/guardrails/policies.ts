/** Compiles the guardrails of keys to policies. Keys share a compiled result while it is current. */
import type { GuardrailsOf, KeyFacts } from '../access/index.ts';
import type { Budget } from '../spend/index.ts';
import type { Database } from '../storage/database.ts';
import { AnswerFilters } from './filters/answer-filters.ts';
import { Filters } from './filters/filters.ts';
import { type CompiledRules, compileRules, Policy } from './policy.ts';
import { type AppliedGuardrail, guardrailsOfKeys } from './store.ts';

/** Maximum number of cached sets of guardrails; the least recently used is dropped first. */
const KEPT = 1_000;

/** Used by `access` when it reads keys. */
export function guardrailsReader(database: Database): GuardrailsOf {
  const compiled = new Map<string, Promise<CompiledRules>>();

  function compiledRules(applied: readonly AppliedGuardrail[]): Promise<CompiledRules> {
    const id = applied.map(({ via, guardrail }) => `${via} ${guardrail.id} ${guardrail.revision}`).join('\n');
    let found = compiled.get(id);
    if (found === undefined) {
      found = compile(applied);
      found.catch(() => compiled.delete(id));
    } else compiled.delete(id);
    compiled.set(id, found);
    if (compiled.size > KEPT) compiled.delete(compiled.keys().next().value!);
    return found;
  }

  return async (keys) => {
    const rows = await guardrailsOfKeys(
      database,
      keys.map(({ keyId }) => keyId),
    );
    const byKey = Map.groupBy(rows, ({ keyId }) => keyId);
    const policies = new Map<string, Policy>();
    for (const key of keys) {
      const applied = byKey.get(key.keyId);
      if (applied === undefined) continue;
      const ids = Object.freeze(applied.map(({ guardrail }) => guardrail.id));
      policies.set(key.keyId, new Policy(ids, await compiledRules(applied), budgetsOf(key, applied)));
    }
    return policies;
  };
}

async function compile(applied: readonly AppliedGuardrail[]): Promise<CompiledRules> {
  const all = applied.map(({ via, guardrail }) => ({ guardrailId: guardrail.id, via, rules: guardrail.rules }));
  return compileRules(
    applied.map(({ guardrail }) => guardrail.rules),
    await Filters.of(all),
    await AnswerFilters.of(all),
  );
}

/**
 * Each key has its own limit; a guardrail assigned to a member counts all of the member's keys together. All spend in
 * the window counts, including spend from before the limit was set.
 */
function budgetsOf(
  { keyId, userId, organizationId }: KeyFacts,
  applied: readonly AppliedGuardrail[],
): readonly Budget[] {
  return Object.freeze(
    applied.flatMap(({ via, guardrail: { id, limitNano, resetInterval, includeByok } }): Budget[] => {
      if (limitNano === null || resetInterval === null) return [];
      const limit = { scope: 'guardrail', interval: resetInterval, limitNano, includeByok } as const;
      if (via !== 'member' || userId === null) return [{ ...limit, scopeId: `${id}:${keyId}`, spentBy: { keyId } }];
      return [{ ...limit, scopeId: `${id}:${userId}`, spentBy: { organizationId, userId } }];
    }),
  );
}
