/** Turns a request into the list of endpoints to try: the table of contents of routing. */
import { GatewayError } from '../../base/errors.ts';
import type { ByokCredential } from '../../byok/index.ts';
import type { Catalog, Endpoint, EndpointStatistics, Model, RoutingVariant } from '../../catalog/index.ts';
import { type RequestFacts, requestedModels } from '../../formats/conversation/format.ts';
import type { SortMetric } from '../../formats/conversation/preferences.ts';
import type { Policy } from '../../guardrails/index.ts';
import type { AcceptedRequest } from '../request.ts';
import {
  type ByokChoice,
  byokOnly,
  type CallerByok,
  expanded,
  fittingKeys,
  hasByok,
  isByokInCooldown,
} from './byok.ts';
import type { Credentials } from './credentials.ts';
import { cooldownOf, type Health } from './health.ts';
import { inOrder, type Live, type Wanted } from './order.ts';
import { type PreparedEndpoint, positionIn, prepare } from './prepared.ts';
import {
  allExcluded,
  namesOf,
  noEndpoints,
  passesToNothing,
  undecryptedKey,
  unknownModel,
  unsupportedModel,
  wrongOperation,
} from './refusal.ts';
import { type Offer, offersOf, type RoutedModels, type RouterModels } from './router-models.ts';
import { type AccountPolicy, type Rule, rulesFor, USUAL_BYTES_PER_TOKEN } from './rules.ts';
import { fractionOf, type SessionKey, type Sessions } from './sessions.ts';
import { tierRank, type WantedTiers, wantedTiers } from './tiers.ts';

export interface Candidate {
  endpoint: Endpoint;
  /** The BYOK credential to use; absent for one of the gateway's own credentials. */
  byok?: ByokCredential;
  /** Index of the requested model that it serves; 0 is the first. */
  rank: number;
  /** Id of the gateway's own credential that must be used; absent for any. */
  credentialId?: string | undefined;
}

export interface Route {
  candidates: readonly Candidate[];
  /** The model's name as the client wrote it. */
  requested: string;
  strategy: 'direct' | 'alias' | 'latest' | 'fallback' | RoutedModels['strategy'];
  /** The decision of a router model; absent if the request names none. */
  router?: Pick<RoutedModels, 'slug' | 'stage'> | undefined;
  /** The session that is kept at the endpoint that answers. */
  session?: SessionKey | undefined;
  /** The outcome for each endpoint of the requested models; absent if there is only one. */
  considered?: Considered | undefined;
}

/** Endpoints that routing considered, for the row of the request. */
export interface Considered {
  /** Endpoints that may serve the request, a list for each model; more than the candidates if those are limited. */
  readonly kept: readonly (readonly Candidate[])[];
  readonly excluded: readonly Excluded[];
  readonly inCooldown: readonly Candidate[];
}

/** An endpoint that may not serve the request. */
interface Excluded {
  readonly endpoint: Endpoint;
  /** The names of rules, `operation` or `service_tier`. */
  readonly reasons: readonly string[];
}

export interface RoutingRequest {
  facts: RequestFacts;
  /** Router models read more of the request than its facts. */
  accepted?: AcceptedRequest;
  promptBytes: number;
  /** Whether the endpoint has the operation for its model. */
  servedBy(endpoint: Endpoint): boolean;
  /** The session of the request for a model; called only if there is a choice. */
  session(model: string): SessionKey | undefined;
}

/** What routing needs besides the request; all of it in memory. */
export interface RoutingParts {
  catalog: Catalog;
  health: Health;
  credentials: Credentials;
  statistics: EndpointStatistics;
  sessions: Sessions;
  accountPolicy: AccountPolicy;
  /** The effective policy of the caller's key; absent without guardrails. */
  guardrails?: Policy;
  /** The caller's BYOK credentials; absent without any. */
  byok?: CallerByok | undefined;
  /** The sort metric for requests that set none. */
  defaultSort?: SortMetric | null;
  /** Absent: there are no router models. */
  routers?: RouterModels | undefined;
  /** A number from 0 (inclusive) to 1 (exclusive), like `Math.random`. */
  random(): number;
  maxCandidates: number;
  /** The configured fallbacks of a model, by its id. Unknown models among them are skipped. */
  fallbacksOf?(modelId: string): readonly string[];
}

/** An endpoint during routing. */
interface Choice extends PreparedEndpoint, ByokChoice {}

const NO_KEYS: readonly ByokCredential[] = [];

/**
 * @throws GatewayError 400 for an unknown model or one that lacks the operation, 403 if the lists of a guardrail leave no
 * endpoint, 404 if the request's own lists, privacy or another constraint do
 */
export function route(request: RoutingRequest, parts: RoutingParts): Route {
  const { facts } = request;
  if (facts.model === undefined && facts.fallbackModels.length === 0) {
    throw new GatewayError('invalid_request', 'model is required: no default model is configured', { path: 'model' });
  }
  const names = requestedModels(facts);
  const rules = rulesFor(facts, request.promptBytes, parts.accountPolicy, parts);
  const { byok } = parts;
  const onlyByok = byok && byokOnly(byok);
  const admission: Admission = { rules, byok, onlyByok };
  const models: Model[] = [];
  let routed: RoutedModels | undefined;
  for (const name of names) {
    const model = parts.catalog.find(name);
    if (model !== undefined) {
      models.push(model);
      continue;
    }
    const chosen = chosenByRouter(name, admission, request, parts);
    if (chosen === undefined) throw noModel(name, names, request, parts);
    routed ??= chosen;
    models.push(...chosen.models);
  }
  if (models.length === 0) throw passesToNothing(names);
  const excluded: Excluded[] = [];
  const kept = models.map((model, rank) => admitted(model, rank, admission, request, excluded));
  if (kept.every(({ length }) => length === 0)) {
    if (byok && models.some((model) => lacksKey(model, rules, byok, request))) throw undecryptedKey(names);
    throw refusal(names, models, onlyByok === undefined ? rules : [...rules, onlyByok], request);
  }
  const further = routed === undefined ? furtherModels(models, facts, parts) : [];
  kept.push(...further.map((model, at) => admitted(model, models.length + at, admission, request)));
  const choice = routed !== undefined || kept.some(({ length }) => length > 1);
  const session = choice ? request.session(names[0]!) : undefined;
  const variant = models[0]!.variant;
  const candidates = ordered(kept, variant, session, request, parts).slice(0, parts.maxCandidates);
  const alone = excluded.length === 0 && kept.length === 1 && kept[0]!.length === 1;
  return {
    candidates,
    requested: names[0]!,
    strategy: routed?.strategy ?? (further.length > 0 ? 'fallback' : strategyOf(names, models)),
    router: routed,
    session,
    considered: alone ? undefined : { kept, excluded, inCooldown: inCooldown(candidates, parts) },
  };
}

const NO_CANDIDATES: readonly Candidate[] = [];

function inCooldown(candidates: readonly Candidate[], parts: RoutingParts): readonly Candidate[] {
  return parts.health.anyCooldown ? candidates.filter((one) => isInCooldown(one, parts)) : NO_CANDIDATES;
}

/** The configured fallbacks of a request that names one model and does not exclude them. */
function furtherModels([first, ...others]: readonly Model[], facts: RequestFacts, parts: RoutingParts): Model[] {
  if (first === undefined || others.length > 0 || facts.provider.allow_fallbacks === false) return [];
  const found = (parts.fallbacksOf?.(first.id) ?? []).map((name) => parts.catalog.find(name));
  return found.filter((model) => model !== undefined && model.id !== first.id) as Model[];
}

/** Undefined if the name is not that of a router model. */
function chosenByRouter(
  name: string,
  admission: Admission,
  request: RoutingRequest,
  parts: RoutingParts,
): RoutedModels | undefined {
  const { accepted } = request;
  if (accepted === undefined) return undefined;
  return parts.routers?.(name, () => {
    const offers = offersOf(parts.catalog.models, (model) => admitted(model, 0, admission, request));
    const session = request.session(name);
    const sticky = session?.named ? parts.sessions.endpointOf(session) : undefined;
    const isLast = ({ model }: Offer) => model.endpoints.some(({ id }) => id === sticky);
    const last = sticky === undefined ? undefined : offers.find(isLast);
    return { offers, request: accepted, sessionModel: last?.model.id, random: parts.random };
  });
}

function noModel(name: string, names: readonly string[], request: RoutingRequest, parts: RoutingParts): GatewayError {
  const unsupported = unsupportedModel(name, (base) => parts.catalog.find(base) !== undefined);
  return unsupported ?? unknownModel(name, names, nearModel(name, request, parts));
}

/** The most similar model name, but only if the caller may use it: errors must not reveal what a guardrail hides. */
function nearModel(name: string, request: RoutingRequest, parts: RoutingParts): string | undefined {
  const near = parts.catalog.near(name);
  const model = near === undefined ? undefined : parts.catalog.find(near);
  if (model === undefined) return undefined;
  const rules = rulesFor(request.facts, request.promptBytes, parts.accountPolicy, parts);
  const { byok } = parts;
  const onlyByok = byok && byokOnly(byok);
  return admitted(model, 0, { rules, byok, onlyByok }, request).length > 0 ? near : undefined;
}

interface Admission {
  rules: readonly Rule[];
  byok: CallerByok | undefined;
  /** Applies to the gateway's own credentials only. */
  onlyByok: Rule | undefined;
}

/** The endpoints of one model that pass all rules. @param excluded gets the others */
function admitted(
  model: Model,
  rank: number,
  { rules, byok, onlyByok }: Admission,
  request: RoutingRequest,
  excluded?: Excluded[],
): Choice[] {
  const { facts } = request;
  const tiers = wantedTiers(facts.serviceTier, model.variant);
  const choices: Choice[] = [];
  for (const prepared of prepare(model)) {
    const { endpoint } = prepared;
    const isServed = request.servedBy(endpoint);
    if (!isServed || !isOffered(prepared, tiers, facts)) {
      excluded?.push({ endpoint, reasons: isServed ? OTHER_TIER : OTHER_OPERATION });
      continue;
    }
    const shared = rules.every((rule) => rule.keeps(prepared)) && (onlyByok?.keeps(prepared) ?? true);
    const keys = byok === undefined ? NO_KEYS : fittingKeys(prepared, byok.of(endpoint), rules);
    if (shared || keys.length > 0) choices.push({ ...prepared, rank, keys, shared });
    else
      excluded?.push({ endpoint, reasons: namesOf(onlyByok === undefined ? rules : [...rules, onlyByok], prepared) });
  }
  return choices;
}

const OTHER_OPERATION: readonly string[] = ['operation'];
const OTHER_TIER: readonly string[] = ['service_tier'];

/** Whether an endpoint would be left if this machine could decrypt all of the caller's BYOK credentials. */
function lacksKey(model: Model, rules: readonly Rule[], byok: CallerByok, request: RoutingRequest): boolean {
  const tiers = wantedTiers(request.facts.serviceTier, model.variant);
  return prepare(model).some(
    (prepared) =>
      request.servedBy(prepared.endpoint) &&
      isOffered(prepared, tiers, request.facts) &&
      fittingKeys(prepared, byok.undecrypted(prepared.endpoint), rules).length > 0,
  );
}

/** An endpoint of a service tier is offered only to requests for that tier, also by its slug (`acme/priority`). */
function isOffered({ endpoint, slugs }: PreparedEndpoint, tiers: WantedTiers, { provider }: RequestFacts): boolean {
  const tier = endpoint.tier?.name;
  if (tier === undefined || tierRank(tier, tiers) !== undefined) return true;
  const slug = `${endpoint.provider.id}/${tier}`;
  return (
    slugs.has(slug) && [...(provider.order ?? []), ...(provider.only ?? [])].some((name) => name.toLowerCase() === slug)
  );
}

function ordered(
  kept: readonly (readonly Choice[])[],
  variant: RoutingVariant | undefined,
  session: SessionKey | undefined,
  { facts, promptBytes }: RoutingRequest,
  parts: RoutingParts,
): readonly Candidate[] {
  // The common case: one model with one endpoint.
  if (kept.length === 1 && kept[0]!.length === 1) return expanded(kept[0]!, parts.health);
  const { provider, serviceTier, needs } = facts;
  const { by, partition } = sortOf(facts, variant, parts.defaultSort ?? undefined);
  const wanted: Wanted = {
    order: provider.order ?? [],
    sort: by,
    tools: needs?.features.includes('tools') ?? false,
    minThroughput: provider.preferred_min_throughput,
    maxLatency: provider.preferred_max_latency,
    promptTokens: facts.media.images + facts.media.documents > 0 ? 0 : promptBytes / USUAL_BYTES_PER_TOKEN,
  };
  const tiers = wantedTiers(serviceTier, variant);
  const live: Live = {
    figures: (id) => parts.statistics.of(id),
    cooldownMs: ({ endpoint }) => cooldownOf(endpoint, parts),
    tier: ({ endpoint }) => tierRank(endpoint.tier?.name, tiers) ?? tiers.chain.length,
    fraction: (id) => (session?.named === true ? fractionOf(session, id) : 1 - parts.random() || Number.MIN_VALUE),
  };
  const groups = partition === 'none' ? [kept.flat()] : kept;
  return cooldownLast(
    groups.map((group) => expanded(first(inOrder(group, wanted, live), session, facts, parts), parts.health)),
    parts,
  );
}

/**
 * Joins the models' candidates in the order of the models. Candidates in cooldown at the end of a model's list go after
 * every later model, so a model that is entirely in cooldown does not delay a healthy fallback.
 */
function cooldownLast(groups: readonly (readonly Candidate[])[], parts: RoutingParts): readonly Candidate[] {
  if (groups.length === 1 || !parts.health.anyCooldown) return groups.flat();
  const ready: Candidate[] = [];
  const later: Candidate[] = [];
  for (const group of groups) {
    const end = group.findLastIndex((candidate) => !isInCooldown(candidate, parts)) + 1;
    ready.push(...group.slice(0, end));
    later.push(...group.slice(end));
  }
  return [...ready, ...later];
}

function isInCooldown({ endpoint, byok }: Candidate, parts: RoutingParts): boolean {
  if (byok === undefined) return cooldownOf(endpoint, parts) > 0;
  return parts.health.cooldownMs(endpoint.id) > 0 || isByokInCooldown(byok, endpoint, parts.health);
}

/** Puts the session's endpoint first unless the request has its own order. Without fallbacks only the first remains. */
function first(
  choices: readonly Choice[],
  session: SessionKey | undefined,
  { provider }: RequestFacts,
  parts: RoutingParts,
): readonly Choice[] {
  let result = choices;
  const sticky = session && !provider.order?.length ? parts.sessions.endpointOf(session) : undefined;
  const at = sticky === undefined ? -1 : choices.findIndex(({ endpoint }) => endpoint.id === sticky);
  if (at > 0 && cooldownOf(choices[at]!.endpoint, parts) === 0) {
    result = [choices[at]!, ...choices.slice(0, at), ...choices.slice(at + 1)];
  }
  if (provider.allow_fallbacks !== false) return result;
  const wanted = firstOfOrder(result, provider.order ?? []) ?? result.find(hasByok) ?? result[0]!;
  return [wanted].filter((choice) => choice !== undefined);
}

/** The endpoint named first in the request's order, even in cooldown; undefined if none is named. */
function firstOfOrder(choices: readonly Choice[], order: readonly string[]): Choice | undefined {
  let best: Choice | undefined;
  for (const choice of choices) {
    const position = positionIn(choice.slugs, order);
    if (position < order.length && (best === undefined || position < positionIn(best.slugs, order))) best = choice;
  }
  return best;
}

const BY_VARIANT: Readonly<Record<RoutingVariant, SortMetric>> = {
  nitro: 'throughput',
  floor: 'price',
  exacto: 'exacto',
};

function sortOf(
  { provider: { sort } }: RequestFacts,
  variant: RoutingVariant | undefined,
  otherwise: SortMetric | undefined,
) {
  const preference = typeof sort === 'string' ? { by: sort } : (sort ?? {});
  return {
    by: preference.by ?? (variant === undefined ? otherwise : BY_VARIANT[variant]),
    partition: ('partition' in preference ? preference.partition : null) ?? 'model',
  };
}

function strategyOf(names: readonly string[], models: readonly Model[]): Route['strategy'] {
  if (names.length > 1) return 'fallback';
  const name = names[0]!;
  const { id, variant, latest } = models[0]!;
  if (latest) return 'latest';
  return name === id || name === `${id}:${variant}` ? 'direct' : 'alias';
}

function refusal(
  names: readonly string[],
  models: readonly Model[],
  rules: readonly Rule[],
  request: RoutingRequest,
): GatewayError {
  if (models.every(({ endpoints }) => endpoints.length === 0)) return noEndpoints(names);
  const served = models.flatMap((model) => prepare(model).filter(({ endpoint }) => request.servedBy(endpoint)));
  return served.length === 0 ? wrongOperation(names) : allExcluded(names, served, rules);
}
