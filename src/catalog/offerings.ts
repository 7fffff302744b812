/**
 * Builds endpoints from settings and facts. Values in the yaml take precedence. Missing ones come from the model's
 * facts, while those of an offer (its price and upstream name) apply only at the public base URL of that provider kind:
 * another URL may have other prices.
 */
import type { ModelSettings, ProviderSettings, ServiceTierSettings } from '../base/config.ts';
import { UNKNOWN_DATA_POLICY } from '../base/config.ts';
import type { FormatId } from '../formats/conversation/conversation.ts';
import { addressOf, type Provider } from '../providers/index.ts';
import type { Endpoint } from './catalog.ts';
import { type Facts, type ModelFacts, type Offer, pricingFrom } from './facts.ts';

/** Prefix of model names in Google's clients and lists. */
export const RESOURCE = 'models/';

/** Indexes the fact rows by all their names with an author. */
export class FactsIndex {
  readonly facts: Facts;
  readonly #byName = new Map<string, ModelFacts>();

  constructor(facts: Facts) {
    this.facts = facts;
    for (const row of facts.models) this.#byName.set(row.id, row);
    for (const row of facts.models) {
      const author = row.id.slice(0, row.id.indexOf('/'));
      for (const name of [row.canonical_slug, ...prefixed(author, [...row.aliases, ...row.dated])]) {
        if (!this.#byName.has(name)) this.#byName.set(name, row);
      }
    }
  }

  of(id: string): ModelFacts | null {
    return this.#byName.get(id) ?? null;
  }
}

export function prefixed(author: string, names: readonly string[]): string[] {
  return names.map((name) => (name.includes('/') ? name : `${author}/${name}`));
}

/** A provider's endpoints with the ids and facts of their models, in list order. */
export function offeringsOf(settings: ProviderSettings, provider: Provider, index: FactsIndex): Offering[] {
  const offered = settings.models.flatMap((model) => {
    const listed = listedOffering(model, settings, provider, index);
    return [
      listed,
      ...(model.serviceTiers ?? []).map((tier) => ({ ...listed, endpoint: inTier(listed.endpoint, tier) })),
    ];
  });
  return settings.openEnded ? [...offered, ...openOfferings(settings, provider, index)] : offered;
}

/** For a provider without models in the yaml: the models that the facts know, then those that it listed itself. */
function openOfferings(settings: ProviderSettings, provider: Provider, index: FactsIndex): Offering[] {
  const offerings = new Map<string, Offering>();
  for (const facts of index.facts.models) {
    const offer = offerOf(facts, settings);
    if (offer === undefined) continue;
    offerings.set(facts.id, { facts, name: null, endpoint: endpointFrom(facts, offer, settings, provider) });
  }
  for (const listed of index.facts.listed[settings.id] ?? []) {
    const name = listed.startsWith(RESOURCE) ? listed.slice(RESOURCE.length) : listed;
    const id = idOf(name, provider);
    if (id === null) continue;
    const facts = index.of(id);
    // The facts already map other names of an offered model, mostly dated ones.
    if (offerings.has(facts?.id ?? id)) continue;
    const endpoint = facts === null ? unlistedEndpoint(provider, id, name) : knownEndpoint(facts, provider, name);
    offerings.set(endpoint.modelId, { facts, name: null, endpoint });
  }
  return [...offerings.values()];
}

interface Offering {
  facts: ModelFacts | null;
  /** Name from the yaml. */
  name: string | null;
  endpoint: Endpoint;
}

function listedOffering(
  model: ModelSettings,
  settings: ProviderSettings,
  provider: Provider,
  index: FactsIndex,
): Offering {
  const { id, name, aliases: _aliases, speaks, serviceTiers: _tiers, ...stated } = model;
  const facts = index.of(id);
  const offer = facts === null ? undefined : offerOf(facts, settings);
  const unnamed = stated.upstreamId === id.slice(id.indexOf('/') + 1);
  const endpoint: Endpoint = Object.freeze({
    ...stated,
    ...(speaks && { speaks: speaks as readonly FormatId[] }),
    id: `${provider.id}:${id}`,
    provider,
    modelId: id,
    upstreamId: unnamed ? (offer?.upstream_id ?? stated.upstreamId) : stated.upstreamId,
    contextLength: stated.contextLength ?? offer?.context_length ?? facts?.context_length ?? null,
    maxCompletionTokens:
      stated.maxCompletionTokens ?? offer?.max_completion_tokens ?? facts?.max_completion_tokens ?? null,
    pricing: stated.pricing ?? priceAt(offer, settings, provider),
    inputModalities: stated.inputModalities ?? facts?.input_modalities ?? null,
    outputModalities: stated.outputModalities ?? facts?.output_modalities ?? null,
    supportedParameters: stated.supportedParameters ?? facts?.supported_parameters ?? null,
    ...(facts !== null && {
      partial: Object.freeze({
        parameters: stated.supportedParameters === null,
        inputs: stated.inputModalities === null && facts.inputs_partial === true,
      }),
    }),
  });
  return { facts, name, endpoint };
}

/** The same endpoint in a service tier: faster or cheaper, at another price. */
function inTier(endpoint: Endpoint, { name, pricing }: ServiceTierSettings): Endpoint {
  return Object.freeze({
    ...endpoint,
    id: `${endpoint.id}/${name}`,
    pricing,
    tier: Object.freeze({ name, defaultPricing: endpoint.pricing }),
  });
}

function endpointFrom(facts: ModelFacts, offer: Offer, settings: ProviderSettings, provider: Provider): Endpoint {
  return Object.freeze({
    ...knownEndpoint(facts, provider, offer.upstream_id),
    contextLength: offer.context_length ?? facts.context_length,
    maxCompletionTokens: offer.max_completion_tokens ?? facts.max_completion_tokens,
    pricing: priceAt(offer, settings, provider),
  });
}

/** An endpoint with the facts that hold at every provider. */
function knownEndpoint(facts: ModelFacts, provider: Provider, upstreamId: string): Endpoint {
  return Object.freeze({
    ...unlistedEndpoint(provider, facts.id, upstreamId),
    contextLength: facts.context_length,
    maxCompletionTokens: facts.max_completion_tokens,
    inputModalities: facts.input_modalities,
    outputModalities: facts.output_modalities,
    supportedParameters: facts.supported_parameters,
    partial: Object.freeze({ parameters: true, inputs: facts.inputs_partial === true }),
  });
}

/** An endpoint that is known by name only. */
export function unlistedEndpoint(provider: Provider, id: string, upstreamId: string): Endpoint {
  return Object.freeze({
    id: `${provider.id}:${id}`,
    provider,
    modelId: id,
    upstreamId,
    contextLength: null,
    maxCompletionTokens: null,
    pricing: null,
    inputModalities: null,
    outputModalities: null,
    supportedParameters: null,
    dataPolicy: UNKNOWN_DATA_POLICY,
    region: null,
    quantization: null,
  });
}

function offerOf(facts: ModelFacts, settings: ProviderSettings): Offer | undefined {
  return facts.offers.find(({ provider }) => provider === settings.kind);
}

export function priceAt(offer: Offer | undefined, settings: ProviderSettings, provider: Provider): Endpoint['pricing'] {
  return offer?.pricing && keepsPrices(settings, provider) ? pricingFrom(offer.pricing) : null;
}

function keepsPrices({ catalogPrices, baseUrl }: ProviderSettings, provider: Provider): boolean {
  return catalogPrices ?? (baseUrl === undefined || baseUrl === addressOf(provider.kind, provider.options));
}

/** Number of models that have no price only because of a custom `base_url` without `catalog_prices`. */
export function withoutPrice(offerings: readonly Offering[], settings: ProviderSettings): number {
  if (settings.baseUrl === undefined || settings.catalogPrices !== undefined) return 0;
  return offerings.filter(
    ({ facts, endpoint }) => endpoint.pricing === null && facts !== null && offerOf(facts, settings)?.pricing,
  ).length;
}

/**
 * The id of a model that a provider lists: its own name if it contains an author (routers), else prefixed with the
 * provider's author. A router's aliases for the newest of a family are skipped.
 */
function idOf(name: string, provider: Provider): string | null {
  if (name.startsWith('~')) return null;
  if (name.includes('/')) return name;
  return provider.kind.author === undefined ? null : `${provider.kind.author}/${name}`;
}
