/** Guardrails for the model lists of keys and teams, and for the guardrails, of another gateway. */
import { isDeepStrictEqual } from 'node:util';
import type { Changed } from '../audit/index.ts';
import { GatewayError } from '../base/errors.ts';
import { uuidv7 } from '../base/ids.ts';
import type { Queryable } from '../storage/database.ts';
import { defaultGuardrailId } from '../workspaces/index.ts';
import { assignKeys } from './assignments/store.ts';
import { changedSettings, guardrailResource } from './guardrail.ts';
import { addGuardrail, existingGuardrail, rewriteGuardrail, UNSET } from './operations.ts';
import { MAX_FILTERS } from './schema.ts';
import type { BuiltinFilter, FilterAction, PatternFilter, Rules } from './settings.ts';
import { hasGuardrailNamed, workspacesOf } from './store.ts';

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

export interface NewFilters {
  builtins: readonly BuiltinFilter[];
  /** Checked (`checkPatterns`). */
  patterns: readonly PatternFilter[];
}

interface Place {
  organizationId: string;
  now: Date;
}

/**
 * Creates a guardrail that is assigned to nothing.
 * @returns false if the workspace has one of this name already, which stays as it is
 */
export async function importFilters(
  tx: Queryable,
  changed: Changed,
  { organizationId, now, workspaceId }: Place & { workspaceId: string },
  { name, builtins, patterns }: NewFilters & { name: string },
): Promise<boolean> {
  if (await hasGuardrailNamed(tx, organizationId, workspaceId, name)) return false;
  const settings = { ...UNSET, name, rules: { ...UNSET.rules, ...combined(UNSET.rules, { builtins, patterns }) } };
  await addGuardrail(tx, changed, { organizationId, workspaceId, createdAt: now }, settings);
  return true;
}

/**
 * Adds filters to the default guardrail of every workspace. A filter that is there already gets the stricter of the two
 * actions, and the directions of both.
 * @returns how many default guardrails have changed
 */
export async function addDefaultFilters(
  tx: Queryable,
  changed: Changed,
  { organizationId, now }: Place,
  filters: NewFilters,
): Promise<number> {
  let rewritten = 0;
  for (const { id } of await workspacesOf(tx, organizationId)) {
    const before = await existingGuardrail(tx, organizationId, defaultGuardrailId(id), true);
    const after = combined(before.rules, filters);
    if (isDeepStrictEqual(after, { builtins: before.rules.builtins, patterns: before.rules.patterns })) continue;
    const settings = { ...before, rules: { ...before.rules, ...after } };
    await rewriteGuardrail(tx, changed, { organizationId, before, settings, now });
    rewritten += 1;
  }
  return rewritten;
}

/** @throws GatewayError 400 for more patterns than a guardrail may have */
function combined(before: Pick<Rules, 'builtins' | 'patterns'>, { builtins, patterns }: NewFilters) {
  const all = {
    builtins: merged([...(before.builtins ?? []), ...builtins], ({ slug }) => slug),
    patterns: merged([...(before.patterns ?? []), ...patterns], ({ pattern }) => pattern),
  };
  if ((all.patterns?.length ?? 0) > MAX_FILTERS) {
    throw new GatewayError('invalid_request', `a guardrail has at most ${MAX_FILTERS} patterns`);
  }
  return all;
}

const STRICTNESS: readonly FilterAction[] = ['flag', 'redact', 'block'];

function merged<Filter extends BuiltinFilter | PatternFilter>(
  filters: readonly Filter[],
  nameOf: (filter: Filter) => string,
): Filter[] | null {
  const byName = new Map<string, Filter>();
  for (const filter of filters) {
    const other = byName.get(nameOf(filter));
    if (other === undefined) byName.set(nameOf(filter), filter);
    else byName.set(nameOf(filter), { ...other, action: stricter(other, filter), appliesTo: bothWays(other, filter) });
  }
  return byName.size === 0 ? null : [...byName.values()];
}

function stricter({ action: one }: BuiltinFilter | PatternFilter, { action: other }: BuiltinFilter | PatternFilter) {
  return STRICTNESS.indexOf(one) > STRICTNESS.indexOf(other) ? one : other;
}

function bothWays(one: BuiltinFilter | PatternFilter, other: BuiltinFilter | PatternFilter) {
  const all = new Set([...(one.appliesTo ?? ['request' as const]), ...(other.appliesTo ?? ['request' as const])]);
  return [...all].sort();
}
