/** Guardrails without I/O: parsing management requests and rendering guardrails. */
import { invalidField } from '../base/errors.ts';
import { usdFromNano } from '../base/money.ts';
import { shownName } from '../base/storable.ts';
import { limitFromUsd } from '../spend/index.ts';
import { BUILTINS, type BuiltinSlug } from './filters/builtins.ts';
import type { GuardrailBody, GuardrailReply } from './schema.ts';
import type { BuiltinFilter, GuardrailSettings, PatternFilter, Rules } from './settings.ts';
import type { StoredGuardrail } from './store.ts';
import { VENDORS, type Vendor } from './vendors.ts';

/**
 * The settings after a change: absent members stay, a list replaces the previous one, null clears. Patterns are checked
 * separately (`filters/patterns.ts`). Throws GatewayError 400 with the field path for what the schema cannot check.
 */
export function changedSettings(before: GuardrailSettings, body: GuardrailBody): GuardrailSettings {
  const { limitNano, resetInterval } = changedLimit(before, body);
  return {
    name: body.name === undefined ? before.name : shownName(body.name),
    description: body.description === undefined ? before.description : body.description,
    rules: changedRules(before.rules, body),
    limitNano,
    resetInterval,
    includeByok: body.include_byok_in_budgets ?? before.includeByok,
  };
}

function changedRules(before: Rules, body: GuardrailBody): Rules {
  const kept = <T>(given: T | undefined, present: T): T => (given === undefined ? present : given);
  const regions = body.allowed_data_regions;
  return {
    allowedRegions: kept(regions && [...new Set(regions)], before.allowedRegions),
    allowedModels: kept(names('allowed_models', body.allowed_models), before.allowedModels),
    ignoredModels: kept(names('ignored_models', body.ignored_models), before.ignoredModels),
    allowedProviders: kept(names('allowed_providers', body.allowed_providers), before.allowedProviders),
    ignoredProviders: kept(names('ignored_providers', body.ignored_providers), before.ignoredProviders),
    builtins: kept(builtins(body), before.builtins),
    patterns: kept(patterns(body), before.patterns),
    freePublication: kept(body.enable_free_model_publication, before.freePublication),
    freeTraining: kept(body.enable_free_model_training, before.freeTraining),
    paidTraining: kept(body.enable_paid_model_training, before.paidTraining),
    zdrWritten: kept(body.enforce_zdr, before.zdrWritten),
    zdr: changedZdr(before, body),
    safetyRetention: {
      vendor_c: kept(aliased(body, 'allow_safety_retention_', 'vendor_c', 'google'), before.safetyRetention.vendor_c),
      other: kept(body.allow_safety_retention_other, before.safetyRetention.other),
    },
  };
}

/**
 * The deprecated `enforce_zdr` sets every per-vendor member that the request does not name. Null is "not set": such a member
 * falls back to `enforce_zdr` too, so that it does not exempt a vendor.
 */
function changedZdr(before: Rules, body: GuardrailBody): Rules['zdr'] {
  const zdr: Record<Vendor, boolean | null> = { ...before.zdr };
  const fallback = body.enforce_zdr === undefined ? before.zdrWritten : body.enforce_zdr;
  const set = (vendor: Vendor, given: boolean | null | undefined): void => {
    if (typeof given === 'boolean') zdr[vendor] = given;
    else if (given === null || body.enforce_zdr !== undefined) zdr[vendor] = fallback;
  };
  for (const { token, alias } of VENDORS) set(token, aliased(body, 'enforce_zdr_', token, alias));
  set('other', body.enforce_zdr_other);
  return zdr;
}

/** Reads a member that has two names. */
function aliased(body: GuardrailBody, prefix: string, token: string, alias: string): boolean | null | undefined {
  const own = body[prefix + token] as boolean | null | undefined;
  const other = body[prefix + alias] as boolean | null | undefined;
  if (own !== undefined && other !== undefined && own !== other) {
    throw invalidField(prefix + alias, `must equal ${prefix}${token}, which is the same setting`);
  }
  return own === undefined ? other : own;
}

function changedLimit(
  before: GuardrailSettings,
  { limit_usd: limit, reset_interval: interval }: GuardrailBody,
): Pick<GuardrailSettings, 'limitNano' | 'resetInterval'> {
  if (limit === undefined && interval === undefined) return before;
  if (limit === undefined || interval === undefined || (limit === null) !== (interval === null)) {
    const missing = limit === undefined || limit === null ? 'limit_usd' : 'reset_interval';
    throw invalidField(missing, 'is required: limit_usd and reset_interval must be set together');
  }
  return { limitNano: limit === null ? null : limitFromUsd('limit_usd', limit), resetInterval: interval };
}

function names(path: string, list: readonly string[] | null | undefined): string[] | null | undefined {
  if (list === undefined || list === null) return list;
  return [
    ...new Set(
      list.map((name, index) => {
        const trimmed = name.trim();
        if (trimmed === '') throw invalidField(`${path}[${index}]`, 'must not be blank');
        return trimmed;
      }),
    ),
  ];
}

function builtins({ content_filter_builtins: list }: GuardrailBody): BuiltinFilter[] | null | undefined {
  if (list === undefined || list === null) return list;
  const seen = new Set<string>();
  const filters = list.map(
    ({ slug, action, label, scan_scope: scanScope, apply_to: appliesTo }, index): BuiltinFilter => {
      const path = `content_filter_builtins[${index}]`;
      if (!Object.hasOwn(BUILTINS, slug)) {
        throw invalidField(`${path}.slug`, `must be one of ${Object.keys(BUILTINS).join(', ')}`);
      }
      if (scanScope !== undefined && slug !== 'regex-prompt-injection') {
        throw invalidField(`${path}.scan_scope`, 'is only valid for regex-prompt-injection');
      }
      if (seen.has(slug)) throw invalidField(`${path}.slug`, `"${slug}" is listed twice`);
      seen.add(slug);
      return {
        slug,
        action,
        ...(typeof label === 'string' && { label }),
        ...(slug === 'regex-prompt-injection' && { scanScope: scanScope ?? 'all_messages' }),
        ...(appliesTo && { appliesTo: [...new Set(appliesTo)] }),
      };
    },
  );
  return filters.length === 0 ? null : filters;
}

function patterns({ content_filters: list }: GuardrailBody): PatternFilter[] | null | undefined {
  if (list === undefined || list === null) return list;
  const filters = list.map(({ pattern, action, label, apply_to: appliesTo }) => ({
    pattern,
    action,
    label: label ?? null,
    ...(appliesTo && { appliesTo: [...new Set(appliesTo)] }),
  }));
  return filters.length === 0 ? null : filters;
}

/** `Guardrail` in `openapi.json`; the per-vendor members appear under both of their names. */
export function guardrailReply(guardrail: StoredGuardrail): GuardrailReply {
  const { rules } = guardrail;
  const byVendor: Record<string, boolean | null> = {};
  for (const { token, alias } of VENDORS) {
    byVendor[`enforce_zdr_${token}`] = rules.zdr[token];
    byVendor[`enforce_zdr_${alias}`] = rules.zdr[token];
  }
  return {
    id: guardrail.id,
    name: guardrail.name,
    description: guardrail.description,
    workspace_id: guardrail.workspaceId,
    allowed_data_regions: list(rules.allowedRegions),
    allowed_models: list(rules.allowedModels),
    allowed_providers: list(rules.allowedProviders),
    ignored_models: list(rules.ignoredModels),
    ignored_providers: list(rules.ignoredProviders),
    content_filter_builtins:
      rules.builtins?.map(({ slug, action, label, scanScope, appliesTo }) => ({
        slug,
        action,
        label: label ?? BUILTINS[slug as BuiltinSlug].label,
        ...(scanScope !== undefined && { scan_scope: scanScope }),
        ...(appliesTo && { apply_to: [...appliesTo] }),
      })) ?? null,
    content_filters:
      rules.patterns?.map(({ pattern, action, label, appliesTo }) => ({
        pattern,
        action,
        label,
        ...(appliesTo && { apply_to: [...appliesTo] }),
      })) ?? null,
    enable_free_model_publication: rules.freePublication,
    enable_free_model_training: rules.freeTraining,
    enable_paid_model_training: rules.paidTraining,
    enforce_zdr: rules.zdrWritten,
    ...byVendor,
    enforce_zdr_other: rules.zdr.other,
    allow_safety_retention_vendor_c: rules.safetyRetention.vendor_c,
    allow_safety_retention_google: rules.safetyRetention.vendor_c,
    allow_safety_retention_other: rules.safetyRetention.other,
    include_byok_in_budgets: guardrail.includeByok,
    limit_usd: guardrail.limitNano === null ? null : usdFromNano(guardrail.limitNano),
    reset_interval: guardrail.resetInterval,
    created_at: guardrail.createdAt.toISOString(),
    updated_at: guardrail.updatedAt?.toISOString() ?? null,
  } as GuardrailReply;
}

/** The resource of an audit entry about a guardrail. */
export function guardrailResource({ id, workspaceId }: StoredGuardrail) {
  return { resourceType: 'guardrail', resourceId: id, workspaceId };
}

function list(names: readonly string[] | null): string[] | null {
  return names && [...names];
}
