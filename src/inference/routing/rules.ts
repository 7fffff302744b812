/**
 * The rules that exclude endpoints. Each judges one endpoint independently, so their order does not matter, and no rule
 * brings back an endpoint that another excludes.
 */
import type { AccountSettings, Pricing } from '../../base/config.ts';
import { type Price, parsePrice } from '../../base/money.ts';
import { WIRE_NAME } from '../../base/namespace.ts';
import type { Catalog, Endpoint } from '../../catalog/index.ts';
import type { Needs, RequestFacts } from '../../formats/conversation/format.ts';
import type { MaxPrice } from '../../formats/conversation/preferences.ts';
import { OPEN_POLICY, type Policy } from '../../guardrails/index.ts';
import { isNamed, type PreparedEndpoint, prepareEndpoint } from './prepared.ts';

export interface Rule {
  /** The name in `availability.excluded_by`. */
  name: string;
  /** Decides the status of the refusal: 403, 404 `privacy_restricted`, 404 `constraint_filtered`. */
  kind: 'list' | 'privacy' | 'constraint';
  /** The path of the request's field that sets the rule; undefined if the account sets it. */
  path: string | undefined;
  keeps(candidate: PreparedEndpoint): boolean;
  /** For the context rule: the estimated prompt tokens. */
  promptTokens?: number;
}

/** The rule for the length of the prompt. */
export const CONTEXT_RULE = 'context_length';

export type AccountPolicy = Pick<
  AccountSettings,
  'zdr' | 'allowTraining' | 'allowPublication' | 'allowSafetyRetention'
>;

/** No text averages more bytes a token: a prompt that exceeds the context by this ratio cannot fit. */
export const MAX_BYTES_PER_TOKEN = 10;
/** A token has about this many bytes. */
export const USUAL_BYTES_PER_TOKEN = 4;
const TOKENS_PER_LISTED_PRICE = 1_000_000n;

/** The effective policy of the caller's guardrails, and the catalog that resolves its names. */
interface Guarded {
  guardrails?: Policy | undefined;
  catalog: Catalog;
}

/** The rules of this request; empty for most requests. */
export function rulesFor(
  facts: RequestFacts,
  promptBytes: number,
  policy: AccountPolicy,
  guarded?: Guarded,
): readonly Rule[] {
  const rules: Rule[] = [];
  addLists(rules, facts);
  addPrivacy(rules, facts, policy, guarded?.guardrails);
  if (guarded !== undefined) addGuardrails(rules, guarded);
  addConstraints(rules, facts, promptBytes);
  if (facts.needs !== undefined) addNeeds(rules, facts.needs, facts.provider.require_parameters === true);
  return rules;
}

/**
 * Whether the account's settings and a key's guardrails allow the endpoint at all, for lists of available models.
 * @param zdr as for a request that demands zero data retention itself
 */
export function leavesEndpoint(policy: AccountPolicy, endpoint: Endpoint, guarded?: Guarded, zdr = false): boolean {
  const rules: Rule[] = [];
  addPrivacy(rules, { provider: { zdr } }, policy, guarded?.guardrails);
  if (guarded !== undefined) addGuardrails(rules, guarded);
  return rules.every((rule) => rule.keeps(prepareEndpoint(endpoint, 0)));
}

/** Whether a request may send data to a provider that has these endpoints, apart from what they can do. */
export function mayReach(
  endpoints: readonly Endpoint[],
  facts: Pick<RequestFacts, 'provider'>,
  policy: AccountPolicy,
  guarded: Guarded,
): boolean {
  const rules: Rule[] = [];
  addLists(rules, facts);
  addPrivacy(rules, facts, policy, guarded.guardrails);
  addGuardrails(rules, guarded);
  return endpoints.some((endpoint) => rules.every((rule) => rule.keeps(prepareEndpoint(endpoint, 0))));
}

function addLists(rules: Rule[], { provider: { only, ignore } }: Pick<RequestFacts, 'provider'>): void {
  const list = { name: 'allowed_providers', kind: 'list' } as const;
  if (only?.length) rules.push({ ...list, path: 'provider.only', keeps: (candidate) => isNamed(candidate, only) });
  if (ignore?.length) {
    rules.push({ ...list, path: 'provider.ignore', keeps: (candidate) => !isNamed(candidate, ignore) });
  }
}

/** Unknown data policies count as the worst (`UNKNOWN_DATA_POLICY`), so these rules fail closed. */
function addPrivacy(
  rules: Rule[],
  { provider }: Pick<RequestFacts, 'provider'>,
  policy: AccountPolicy,
  guardrails: Policy = OPEN_POLICY,
): void {
  const privacy = (name: string, path: string | undefined, keeps: Rule['keeps']): void => {
    rules.push({ name: `data_policy:${name}`, kind: 'privacy', path, keeps });
  };
  const always = provider.zdr === true || policy.zdr;
  if (always || guardrails.compiled.zdr.size > 0) {
    const { allowSafetyRetention } = policy;
    const path = provider.zdr === true && !policy.zdr ? 'provider.zdr' : undefined;
    privacy('zdr', path, ({ endpoint: { dataPolicy, modelId } }) => {
      if (!always && !guardrails.wantsZdr(modelId)) return true;
      if (!dataPolicy.zdr) return false;
      return !dataPolicy.retainsForSafety || (allowSafetyRetention && guardrails.allowsSafetyRetention(modelId));
    });
  }
  if (provider.data_collection === 'deny') {
    privacy('training', 'provider.data_collection', ({ endpoint: { dataPolicy } }) => {
      return !dataPolicy.trains && !dataPolicy.publishes;
    });
  }
  if (!policy.allowTraining) privacy('training', undefined, ({ endpoint }) => !endpoint.dataPolicy.trains);
  if (!policy.allowPublication) privacy('publication', undefined, ({ endpoint }) => !endpoint.dataPolicy.publishes);
}

/** The rules of the key's guardrails, which apply whatever the request sets. */
function addGuardrails(rules: Rule[], { guardrails, catalog }: Guarded): void {
  for (const { name, kind, keeps } of guardrails?.compiled.rules ?? []) {
    rules.push({ name, kind, path: undefined, keeps: ({ endpoint }) => keeps(endpoint, catalog) });
  }
}

function addConstraints(rules: Rule[], { provider, media }: RequestFacts, promptBytes: number): void {
  const { quantizations, max_price: limits } = provider;
  const constraint = (name: string, path: string, keeps: Rule['keeps']): void => {
    rules.push({ name, kind: 'constraint', path, keeps });
  };
  if (quantizations?.length) {
    constraint('quantization', 'provider.quantizations', ({ endpoint }) =>
      quantizations.includes(endpoint.quantization?.toLowerCase() ?? 'unknown'),
    );
  }
  if (limits) addPriceLimits(limits, promptBytes, constraint);
  // The size of inline media says nothing about their tokens.
  const minTokens = media.images + media.documents > 0 ? 0 : Math.floor(promptBytes / MAX_BYTES_PER_TOKEN);
  if (minTokens > 0) {
    rules.push({
      name: CONTEXT_RULE,
      kind: 'constraint',
      path: 'messages',
      keeps: ({ endpoint: { contextLength } }) => contextLength === null || minTokens <= contextLength,
      promptTokens: Math.ceil(promptBytes / USUAL_BYTES_PER_TOKEN),
    });
  }
}

type AddConstraint = (name: string, path: string, keeps: Rule['keeps']) => void;

/** An unknown price exceeds every limit. */
function addPriceLimits(limits: MaxPrice, promptBytes: number, add: AddConstraint): void {
  const promptTokens = Math.ceil(promptBytes / USUAL_BYTES_PER_TOKEN);
  const limit = (name: keyof MaxPrice, per: bigint, priceOf: (pricing: Pricing) => Price): void => {
    const price = limits[name];
    if (price === undefined || price === null) return;
    const max = parsePrice(String(price));
    add('max_price', `provider.max_price.${name}`, ({ endpoint: { pricing } }) => {
      return pricing !== null && priceOf(pricingAt(pricing, promptTokens)) * per <= max;
    });
  };
  limit('prompt', TOKENS_PER_LISTED_PRICE, ({ prompt }) => prompt);
  limit('completion', TOKENS_PER_LISTED_PRICE, ({ completion }) => completion);
  limit('request', 1n, ({ request = 0n }) => request);
  limit('image', 1n, ({ image = 0n }) => image);
  // Audio without a price of its own is charged as prompt.
  limit('audio', 1n, ({ audio, prompt }) => audio ?? prompt);
}

/** The prices for a prompt of about this length. */
function pricingAt(pricing: Pricing, promptTokens: number): Pricing {
  let result = pricing;
  for (const { minPromptTokens, prices } of pricing.overrides ?? []) {
    if (promptTokens > minPromptTokens) result = { ...result, ...prices };
  }
  return result;
}

/** Excludes endpoints that lack a needed feature according to the catalog. Endpoints with unknown support are tried. */
function addNeeds(rules: Rule[], needs: Needs, requireParameters: boolean): void {
  const feature = (name: string, path: string, keeps: Rule['keeps']): void => {
    rules.push({ name: `feature:${name}`, kind: 'constraint', path, keeps });
  };
  for (const kind of needs.inputs) {
    feature(
      `${kind}_input`,
      'messages',
      ({ endpoint: { inputModalities, partial } }) => partial?.inputs || (inputModalities?.includes(kind) ?? true),
    );
  }
  for (const kind of needs.outputs) {
    feature(`${kind}_output`, 'modalities', ({ endpoint: { outputModalities } }) => {
      return outputModalities?.includes(kind) ?? true;
    });
  }
  for (const name of needs.features) {
    feature(name, PATHS[name] ?? name, ({ parameters, endpoint }) => {
      // A tool's arguments can carry structured output.
      const known = parameters === null || parameters.has(name) || (isOutputFeature(name) && parameters.has('tools'));
      return endpoint.partial?.parameters || known || (name === 'tools' && hasAll(endpoint, needs.serverTools));
    });
  }
  if (!requireParameters || needs.parameters.length === 0) return;
  rules.push({
    name: 'require_parameters',
    kind: 'constraint',
    path: 'provider.require_parameters',
    keeps: ({ parameters }) => {
      return parameters !== null && needs.parameters.every((names) => names.some((name) => parameters.has(name)));
    },
  });
}

/** Whether the endpoint has all of these server tools itself, so that its model needs no functions. */
function hasAll({ provider, upstreamId }: Endpoint, names: readonly string[] | undefined): boolean {
  const rows = provider.kind.nativeTools?.filter(({ models }) => models?.test(upstreamId) !== false) ?? [];
  return names?.every((name) => rows.some(({ tool }) => name === `${WIRE_NAME}:${tool}`)) === true;
}

/** Whether the feature is an output format. */
export function isOutputFeature(name: string): boolean {
  return name === 'structured_outputs' || name === 'response_format';
}

const PATHS: Readonly<Record<string, string>> = {
  tools: 'tools',
  structured_outputs: 'response_format',
  response_format: 'response_format',
};
