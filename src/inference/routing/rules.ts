/**
 * The rules that exclude endpoints (wire/chat.md, "provider"; wire/common.md, `excluded_by`). Each looks at one endpoint
 * by itself, so the order in which they are applied changes nothing, and a further one never brings an endpoint back.
 */
import type { AccountSettings, Pricing } from '../../base/config.ts';
import { type Price, parsePrice } from '../../base/money.ts';
import type { Catalog, Endpoint } from '../../catalog/index.ts';
import type { Asked, Needs } from '../../formats/conversation/format.ts';
import type { MaxPrice } from '../../formats/conversation/preferences.ts';
import { OPEN_POLICY, type Policy } from '../../guardrails/index.ts';
import { isNamed, type PreparedEndpoint, prepareEndpoint } from './prepared.ts';

export interface Rule {
  /** As in `availability.excluded_by`. */
  name: string;
  /** Decides the status of the refusal: 403, 404 `privacy_restricted`, 404 `constraint_filtered`. */
  kind: 'list' | 'privacy' | 'constraint';
  /** Of the request's field that asks for it; undefined when the account does. */
  path: string | undefined;
  keeps(candidate: PreparedEndpoint): boolean;
  /** Of the rule about the context: what the prompt has, estimated. */
  promptTokens?: number;
}

/** The rule about the length of the prompt. */
export const CONTEXT_RULE = 'context_length';

export type RoutingPolicy = Pick<
  AccountSettings,
  'zdr' | 'allowTraining' | 'allowPublication' | 'allowSafetyRetention'
>;

/** No token has so many bytes on average: what exceeds the context even so cannot fit. */
const MOST_BYTES_PER_TOKEN = 10;
/** Texts of about this many bytes are a token. */
export const USUAL_BYTES_PER_TOKEN = 4;
const TOKENS_PER_LISTED_PRICE = 1_000_000n;

/** The effective policy of the caller's guardrails, and the catalog in which their names mean something. */
export interface Guarded {
  guardrails?: Policy | undefined;
  catalog: Catalog;
}

/** The rules that this request brings along; empty for most. */
export function rulesFor(asked: Asked, promptBytes: number, policy: RoutingPolicy, guarded?: Guarded): readonly Rule[] {
  const rules: Rule[] = [];
  addLists(rules, asked);
  addPrivacy(rules, asked, policy, guarded?.guardrails);
  if (guarded !== undefined) addGuardrails(rules, guarded);
  addConstraints(rules, asked, promptBytes);
  if (asked.needs !== undefined) addNeeds(rules, asked.needs, asked.provider.require_parameters === true);
  return rules;
}

/**
 * Whether the account's own settings and a key's guardrails leave an endpoint at all, for lists of what can be asked for.
 * @param zdr to requests that want zero data retention themselves
 */
export function leavesEndpoint(policy: RoutingPolicy, endpoint: Endpoint, guarded?: Guarded, zdr = false): boolean {
  const rules: Rule[] = [];
  addPrivacy(rules, { provider: { zdr } }, policy, guarded?.guardrails);
  if (guarded !== undefined) addGuardrails(rules, guarded);
  return rules.every((rule) => rule.keeps(prepareEndpoint(endpoint, 0)));
}

function addLists(rules: Rule[], { provider: { only, ignore } }: Asked): void {
  const list = { name: 'allowed_providers', kind: 'list' } as const;
  if (only?.length) rules.push({ ...list, path: 'provider.only', keeps: (candidate) => isNamed(candidate, only) });
  if (ignore?.length) {
    rules.push({ ...list, path: 'provider.ignore', keeps: (candidate) => !isNamed(candidate, ignore) });
  }
}

/** What is not known of an endpoint counts as the worst (`UNKNOWN_DATA_POLICY`), so these rules fail closed. */
function addPrivacy(
  rules: Rule[],
  { provider }: Pick<Asked, 'provider'>,
  policy: RoutingPolicy,
  guardrails: Policy = OPEN_POLICY,
): void {
  const privacy = (name: string, path: string | undefined, keeps: Rule['keeps']): void => {
    rules.push({ name: `data_policy:${name}`, kind: 'privacy', path, keeps });
  };
  const always = provider.zdr === true || policy.zdr;
  if (always || guardrails.prescription.zdr.size > 0) {
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

/** What the guardrails of the key say, whatever the request does. */
function addGuardrails(rules: Rule[], { guardrails, catalog }: Guarded): void {
  for (const { name, kind, keeps } of guardrails?.prescription.rules ?? []) {
    rules.push({ name, kind, path: undefined, keeps: ({ endpoint }) => keeps(endpoint, catalog) });
  }
}

function addConstraints(rules: Rule[], { provider, media }: Asked, promptBytes: number): void {
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
  // Inline media are bytes that say nothing about tokens.
  const leastTokens = media.images + media.documents > 0 ? 0 : Math.floor(promptBytes / MOST_BYTES_PER_TOKEN);
  if (leastTokens > 0) {
    rules.push({
      name: CONTEXT_RULE,
      kind: 'constraint',
      path: 'messages',
      keeps: ({ endpoint: { contextLength } }) => contextLength === null || leastTokens <= contextLength,
      promptTokens: Math.ceil(promptBytes / USUAL_BYTES_PER_TOKEN),
    });
  }
}

type AddConstraint = (name: string, path: string, keeps: Rule['keeps']) => void;

/** A price that is not known is above every limit. */
function addPriceLimits(limits: MaxPrice, promptBytes: number, add: AddConstraint): void {
  const promptTokens = Math.ceil(promptBytes / USUAL_BYTES_PER_TOKEN);
  const limit = (name: keyof MaxPrice, per: bigint, priceOf: (pricing: Pricing) => Price): void => {
    const given = limits[name];
    if (given === undefined || given === null) return;
    const most = parsePrice(String(given));
    add('max_price', `provider.max_price.${name}`, ({ endpoint: { pricing } }) => {
      return pricing !== null && priceOf(pricingAt(pricing, promptTokens)) * per <= most;
    });
  };
  limit('prompt', TOKENS_PER_LISTED_PRICE, ({ prompt }) => prompt);
  limit('completion', TOKENS_PER_LISTED_PRICE, ({ completion }) => completion);
  limit('request', 1n, ({ request = 0n }) => request);
  limit('image', 1n, ({ image = 0n }) => image);
  // Sound without a price of its own is charged as prompt.
  limit('audio', 1n, ({ audio, prompt }) => audio ?? prompt);
}

/** The prices that hold for a prompt of about this length. */
function pricingAt(pricing: Pricing, promptTokens: number): Pricing {
  let result = pricing;
  for (const { minPromptTokens, prices } of pricing.overrides ?? []) {
    if (promptTokens > minPromptTokens) result = { ...result, ...prices };
  }
  return result;
}

/** What the catalog knows that an endpoint cannot do. Where it knows nothing, the try shows. */
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
      // An answer in a format can be the argument of a tool.
      const known = parameters === null || parameters.has(name) || (isOutputFeature(name) && parameters.has('tools'));
      return endpoint.partial?.parameters || known;
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

/** Whether the feature is a format of the answer. */
export function isOutputFeature(name: string): boolean {
  return name === 'structured_outputs' || name === 'response_format';
}

const PATHS: Readonly<Record<string, string>> = {
  tools: 'tools',
  structured_outputs: 'response_format',
  response_format: 'response_format',
};
