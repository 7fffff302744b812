/**
 * The available models and their endpoints (one endpoint is one provider's offering). Built as a whole from the
 * configuration and the model facts (`facts.ts`), frozen, and replaced as a whole on reload, so a request sees either
 * the old or the new one.
 */
import type { DataPolicy, Pricing, ProviderSettings } from '../base/config.ts';
import type { FormatId } from '../formats/conversation/conversation.ts';
import type { Provider, ProviderKind } from '../providers/index.ts';
import { CalledModels } from './called-models.ts';
import type { Facts, ModelFacts } from './facts.ts';
import { Names, openEndpoints } from './names.ts';
import { FactsIndex, offeringsOf, withoutPrice } from './offerings.ts';
import { SHIPPED_FACTS } from './snapshot/index.ts';

export interface Endpoint {
  /** `<provider id>:<model id>`; stable across reloads, because statistics and cooldowns are keyed by it. */
  id: string;
  provider: Provider;
  modelId: string;
  /** The upstream's name of the model. */
  upstreamId: string;
  /** Formats of this endpoint, if they differ from its provider's. */
  speaks?: readonly FormatId[];
  contextLength: number | null;
  maxCompletionTokens: number | null;
  /** Null: unknown, which does not mean free. */
  pricing: Pricing | null;
  /** In the provider's batch interface, if the configuration sets it (`batch-price.ts`). */
  batchPricing?: Pricing;
  /** Null: unknown. */
  inputModalities: readonly string[] | null;
  outputModalities: readonly string[] | null;
  /** Null: unknown. */
  supportedParameters: readonly string[] | null;
  /** Which of the lists above may be incomplete: something missing from them may still be supported. */
  partial?: { parameters: boolean; inputs: boolean };
  dataPolicy: DataPolicy;
  region: string | null;
  quantization: string | null;
  /** Service tier of this offering; absent: the provider's default tier. */
  tier?: EndpointTier;
}

export interface EndpointTier {
  /** As in `service_tier`: `priority`, `flex`, `scale`, `ultrafast`. */
  name: string;
  /** Pricing of a reply that the upstream served in its default tier anyway. */
  defaultPricing: Pricing | null;
}

export interface Model {
  /** `author/slug`. */
  id: string;
  name: string;
  /** In configuration order. Empty only for `author/slug:free` of a model without a free endpoint. */
  endpoints: readonly Endpoint[];
  /** The routing suffix of the requested name (`author/slug:nitro`); the id does not contain it. */
  variant?: RoutingVariant;
  /** Set if the requested name was the newest of a family (`~author/family-latest`). */
  latest?: true;
  /** Chooses one of the models that its endpoints serve; only in lists. */
  router?: true;
  /** Facts beyond the configuration; absent if there are none. */
  facts?: ModelFacts;
}

/** `nitro`: by throughput; `floor`: by price; `exacto`: by the validity of tool calls (`inference/routing`). */
export type RoutingVariant = 'nitro' | 'floor' | 'exacto';

/** `~author/family-latest` and its current model. */
export interface LatestModel {
  id: string;
  family: string;
  target: Model;
}

export interface Catalog {
  /** All listed models: those of the yaml first, then those that the facts know of environment-enabled providers. */
  readonly models: readonly Model[];
  readonly latest: readonly LatestModel[];
  /** The configured providers, in configuration order. */
  readonly providers: readonly Provider[];
  /** Providers whose models lost the catalog's prices because of a `base_url`, with the number of models. */
  readonly unpriced: readonly { provider: string; models: number }[];
  /** Resolves a model name (`names.ts`) in constant time. The result has the full id, without a routing suffix. */
  find(name: string): Model | undefined;
  /** The price of a model that this provider's upstream called itself; undefined or absent: unknown. */
  pricingOfCalled?(provider: Provider, upstreamName: string): Pricing | undefined;
  /** The id of the most similar listed model, for a name that `find` does not resolve. */
  near(name: string): string | undefined;
}

/**
 * @param settings the configured providers
 * @param providers the same, created by `providersFrom`
 * @param kinds define which vendor owns a bare name, even if the vendor's models come from another provider
 * @param facts model facts; default: those shipped with the package
 * @param standIns providers whose models are not listed
 */
export function buildCatalog(
  settings: readonly ProviderSettings[],
  providers: readonly Provider[],
  kinds: readonly ProviderKind[],
  facts: Facts = SHIPPED_FACTS,
  standIns: StandIns = NO_STAND_INS,
): Catalog {
  const byId = new Map(providers.map((provider) => [provider.id, provider]));
  const index = new FactsIndex(facts);
  const open: Provider[] = [];
  const listed = new Map<string, Listed>();
  const unpriced: { provider: string; models: number }[] = [];
  for (const one of settings) {
    const provider = byId.get(one.id);
    if (!provider) throw new Error(`the provider ${one.id} is missing`);
    if (one.openEnded) open.push(provider);
    const offerings = offeringsOf(one, provider, index);
    const lost = withoutPrice(offerings, one);
    if (lost > 0) unpriced.push({ provider: one.id, models: lost });
    for (const { endpoint, facts, name } of offerings) {
      const entry = listed.get(endpoint.modelId) ?? { name: null, facts, endpoints: [] };
      entry.name ??= name;
      entry.endpoints.push(endpoint);
      listed.set(endpoint.modelId, entry);
    }
  }
  const models = [...listed].map(([id, entry]) => modelOf(id, entry, open));
  const unlisted = unlistedModels(standIns, index);
  const names = new Names({ models, aliases: aliasesOf(settings), open, kinds, facts });
  const listedEndpoints = models.flatMap(({ endpoints }) => endpoints);
  const called = new CalledModels(listedEndpoints, settings, facts);
  return Object.freeze({
    models: Object.freeze(models),
    latest: Object.freeze(names.latest),
    providers: Object.freeze([...providers]),
    unpriced: Object.freeze(unpriced),
    find: (name: string) => names.find(name) ?? unlisted.get(name),
    pricingOfCalled: (provider: Provider, name: string) => called.pricing(provider, name),
    near: (name: string) => names.near(name),
  });
}

/** Ids of models by the further names that the configuration gives them. */
function aliasesOf(settings: readonly ProviderSettings[]): ReadonlyMap<string, string> {
  const listed = settings.flatMap(({ models }) => models);
  return new Map(listed.flatMap(({ id, aliases = [] }) => aliases.map((alias) => [alias, id] as const)));
}

/** Stand-in providers, whose models are found by id but not listed: their settings and providers. */
interface StandIns {
  settings: readonly ProviderSettings[];
  providers: readonly Provider[];
}

const NO_STAND_INS: StandIns = { settings: [], providers: [] };

function unlistedModels({ settings, providers }: StandIns, index: FactsIndex): Map<string, Model> {
  const models = new Map<string, Model>();
  settings.forEach((one, at) => {
    for (const { endpoint, facts, name } of offeringsOf(one, providers[at]!, index)) {
      models.set(endpoint.modelId, modelOf(endpoint.modelId, { name, facts, endpoints: [endpoint] }, []));
    }
  });
  return models;
}

interface Listed {
  name: string | null;
  facts: ModelFacts | null;
  endpoints: Endpoint[];
}

/** Providers that accept any model of their author also offer it, unless they list it themselves. */
function modelOf(id: string, { name, facts, endpoints }: Listed, open: readonly Provider[]): Model {
  const others = openEndpoints(open, id).filter((one) => endpoints.every(({ provider }) => provider !== one.provider));
  return Object.freeze({
    id,
    name: name ?? facts?.name ?? id,
    endpoints: Object.freeze([...endpoints, ...others]),
    ...(facts !== null && { facts }),
  });
}
