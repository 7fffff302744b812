/**
 * The effective policy of one key: everything that its guardrails prescribe together, compiled when the key is read and
 * never changed after that. The most restrictive wins, so one guardrail more never allows more: each rule only excludes,
 * regions are an intersection, each budget is checked by itself, and of a filter's actions the strictest counts.
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

/** Excludes endpoints, one by one. */
export interface EndpointRule {
  /** As in `availability.excluded_by`. */
  readonly name: string;
  readonly kind: 'list' | 'privacy';
  keeps(endpoint: Endpoint, catalog: Catalog): boolean;
}

/** What the guardrails say of requests, whoever's they are. Shared by all keys that have the same guardrails. */
export interface Prescription {
  /** Regional roots that requests may arrive at; null: any. Empty: none. */
  readonly regions: ReadonlySet<DataRegion> | null;
  readonly rules: readonly EndpointRule[];
  /** Vendors whose models need zero data retention. */
  readonly zdr: ReadonlySet<Vendor>;
  /** Vendors of whose models endpoints that retain for safety do not count as such that retain nothing. */
  readonly strictZdr: ReadonlySet<Vendor>;
  /** On requests. */
  readonly filters: Filters | undefined;
  readonly answerFilters: AnswerFilters | undefined;
}

export class Policy implements GuardrailTerms {
  readonly ids: readonly string[];
  readonly prescription: Prescription;
  readonly budgets: readonly Budget[];

  constructor(ids: readonly string[], prescription: Prescription, budgets: readonly Budget[]) {
    this.ids = ids;
    this.prescription = prescription;
    this.budgets = budgets;
    Object.freeze(this);
  }

  /** @throws GatewayError 403 when requests may not arrive at this root */
  admit(region: DataRegion): void {
    const { regions } = this.prescription;
    if (regions === null || regions.has(region)) return;
    const allowed = [...regions].join(', ');
    throw new GatewayError(
      'permission_denied',
      regions.size === 0
        ? 'the guardrails of this key have no region in common'
        : `the guardrails of this key allow requests through these regions only: ${allowed}; this one came through ${region}`,
      { availability: { code: 'region_restricted', retryable: false, excluded_by: ['data_region'] } },
    );
  }

  wantsZdr(modelId: string): boolean {
    const { zdr } = this.prescription;
    return zdr.size > 0 && zdr.has(vendorOf(modelId));
  }

  allowsSafetyRetention(modelId: string): boolean {
    const { strictZdr } = this.prescription;
    return strictZdr.size === 0 || !strictZdr.has(vendorOf(modelId));
  }
}

/** Of a key that no guardrail applies to. */
export const OPEN_POLICY = new Policy([], prescriptionOf([], undefined), []);

export function policyOf({ guardrails }: Pick<Caller, 'guardrails'>): Policy {
  return guardrails instanceof Policy ? guardrails : OPEN_POLICY;
}

export function prescriptionOf(
  all: readonly Rules[],
  filters: Filters | undefined,
  answerFilters?: AnswerFilters,
): Prescription {
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
    rules: Object.freeze(all.flatMap(rulesOf)),
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

function rulesOf(rules: Rules): EndpointRule[] {
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

/** What is not known of an endpoint counts as the worst: of an unknown price, that it is both free and paid. */
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
