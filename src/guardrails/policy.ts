/**
 * The effective policy of one key, combined from all its guardrails when the key is read, and immutable. The most
 * restrictive rule wins, so an additional guardrail never allows more: rules only exclude endpoints, regions are
 * intersected, each budget is checked separately, and the strictest action of a filter applies.
 */
import type { Caller, GuardrailTerms } from '../access/index.ts';
import { GatewayError } from '../base/errors.ts';
import { type Catalog, costsNothing, type Endpoint } from '../catalog/index.ts';
import type { Budget, DataRegion } from '../spend/index.ts';
import type { AnswerFilters } from './filters/answer-filters.ts';
import type { Filters } from './filters/filters.ts';
import { NameList } from './name-list.ts';
import type { Rules } from './settings.ts';
import { type Vendor, vendorOf } from './vendors.ts';

/** A rule that excludes endpoints. */
export interface EndpointRule {
  /** As reported in `availability.excluded_by`. */
  readonly name: string;
  readonly kind: 'list' | 'privacy';
  keeps(endpoint: Endpoint, catalog: Catalog): boolean;
}

/** Guardrail rules that do not depend on the key. Shared by all keys with the same guardrails. */
export interface CompiledRules {
  /** Regional roots that requests may use; null for any, empty for none. */
  readonly regions: ReadonlySet<DataRegion> | null;
  readonly rules: readonly EndpointRule[];
  /** Vendors whose models require zero data retention. */
  readonly zdr: ReadonlySet<Vendor>;
  /** Vendors for which retention for safety disqualifies an endpoint from zero data retention. */
  readonly strictZdr: ReadonlySet<Vendor>;
  /** Filters on requests. */
  readonly filters: Filters | undefined;
  readonly answerFilters: AnswerFilters | undefined;
}

export class Policy implements GuardrailTerms {
  readonly ids: readonly string[];
  readonly regions: ReadonlySet<DataRegion> | null;
  readonly compiled: CompiledRules;
  readonly budgets: readonly Budget[];

  constructor(ids: readonly string[], compiled: CompiledRules, budgets: readonly Budget[]) {
    this.ids = ids;
    this.regions = compiled.regions;
    this.compiled = compiled;
    this.budgets = budgets;
    Object.freeze(this);
  }

  /**
   * @param requested the models of the request
   * @throws GatewayError 403 when requests may not use this regional root
   */
  admit(region: DataRegion, requested: () => readonly string[] = () => []): void {
    const { regions } = this;
    if (regions === null || regions.has(region)) return;
    const allowed = [...regions].join(', ');
    throw new GatewayError(
      'permission_denied',
      regions.size === 0
        ? 'the guardrails of this key have no region in common'
        : `the guardrails of this key only allow requests through these regions: ${allowed}; this request used ${region}`,
      {
        availability: {
          code: 'region_restricted',
          retryable: false,
          requested_models: requested(),
          excluded_by: ['data_region'],
        },
      },
    );
  }

  wantsZdr(modelId: string): boolean {
    const { zdr } = this.compiled;
    return zdr.size > 0 && zdr.has(vendorOf(modelId));
  }

  allowsSafetyRetention(modelId: string): boolean {
    const { strictZdr } = this.compiled;
    return strictZdr.size === 0 || !strictZdr.has(vendorOf(modelId));
  }
}

/** For a key without guardrails. */
export const OPEN_POLICY = new Policy([], compileRules([], undefined), []);

export function policyOf({ guardrails }: Pick<Caller, 'guardrails'>): Policy {
  return guardrails instanceof Policy ? guardrails : OPEN_POLICY;
}

export function compileRules(
  all: readonly Rules[],
  filters: Filters | undefined,
  answerFilters?: AnswerFilters,
): CompiledRules {
  const zdr = new Set<Vendor>();
  const strictZdr = new Set<Vendor>();
  for (const rules of all) {
    for (const [vendor, wanted] of Object.entries(rules.zdr)) if (wanted === true) zdr.add(vendor as Vendor);
    for (const [vendor, allowed] of Object.entries(rules.safetyRetention)) {
      if (allowed === false) strictZdr.add(vendor as Vendor);
    }
  }
  return Object.freeze({
    regions: regionsOf(all),
    rules: Object.freeze(all.flatMap(endpointRules)),
    zdr,
    strictZdr,
    filters,
    answerFilters,
  });
}

function regionsOf(all: readonly Rules[]): ReadonlySet<DataRegion> | null {
  let regions: ReadonlySet<DataRegion> | null = null;
  for (const { allowedRegions } of all) {
    if (allowedRegions === null) continue;
    const allowed = new Set(allowedRegions);
    regions = regions === null ? allowed : regions.intersection(allowed);
  }
  return regions;
}

function endpointRules(rules: Rules): EndpointRule[] {
  return [...listRules(rules), ...trainingRules(rules)];
}

function listRules({ allowedModels, ignoredModels, allowedProviders, ignoredProviders }: Rules): EndpointRule[] {
  const rules: EndpointRule[] = [];
  const list = (name: string, keeps: EndpointRule['keeps']) => rules.push({ name, kind: 'list', keeps });
  if (allowedModels !== null) {
    const names = new NameList(allowedModels);
    list('allowed_models', ({ modelId }, catalog) => names.hasModel(modelId, catalog));
  }
  if (ignoredModels !== null) {
    const names = new NameList(ignoredModels);
    list('ignored_models', ({ modelId }, catalog) => !names.hasModelOrVariant(modelId, catalog));
  }
  if (allowedProviders !== null) {
    const names = new NameList(allowedProviders);
    list('allowed_providers', (endpoint) => names.hasProviderOf(endpoint));
  }
  if (ignoredProviders !== null) {
    const names = new NameList(ignoredProviders);
    list('ignored_providers', (endpoint) => !names.hasProviderOf(endpoint));
  }
  return rules;
}

/** Unknown properties of an endpoint count as the worst case: an unknown price counts as both free and paid. */
function trainingRules({ freePublication, freeTraining, paidTraining }: Rules): EndpointRule[] {
  const rules: EndpointRule[] = [];
  const privacy = (name: string, keeps: EndpointRule['keeps']) => rules.push({ name, kind: 'privacy', keeps });
  if (freePublication === false) {
    privacy('data_policy:publication', (endpoint) => !endpoint.dataPolicy.publishes || isPaid(endpoint));
  }
  if (freeTraining === false) {
    privacy('data_policy:training', (endpoint) => !endpoint.dataPolicy.trains || isPaid(endpoint));
  }
  if (paidTraining === false) {
    privacy('data_policy:training', (endpoint) => !endpoint.dataPolicy.trains || isFree(endpoint));
  }
  return rules;
}

function isFree({ modelId, pricing }: Endpoint): boolean {
  if (modelId.endsWith(':free')) return true;
  return costsNothing(pricing);
}

function isPaid(endpoint: Endpoint): boolean {
  return endpoint.pricing !== null && !isFree(endpoint);
}
