/**
 * What can be asked for: models, and for each the endpoints (one provider's offering) that serve it. Built from the
 * configuration and the facts about models (`facts.ts`) as a whole, frozen, and replaced as a whole on a reload, so that a
 * request sees one or the other.
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
  /** `<provider id>:<model id>`; stays the same over reloads, so that statistics and cooling can be kept by it. */
  id: string;
  provider: Provider;
  modelId: string;
  /** The upstream's own name of the model. */
  upstreamId: string;
  /** The forms in which it is asked, where they are not those of its provider. */
  speaks?: readonly FormatId[];
  contextLength: number | null;
  maxCompletionTokens: number | null;
  /** null: unknown, which is not free. */
  pricing: Pricing | null;
  /** null: unknown. */
  inputModalities: readonly string[] | null;
  outputModalities: readonly string[] | null;
  /** null: unknown. */
  supportedParameters: readonly string[] | null;
  /** Which of the lists above hold only what is known to be there: what is missing in them may be there too. */
  partial?: { parameters: boolean; inputs: boolean };
  dataPolicy: DataPolicy;
  region: string | null;
  quantization: string | null;
  /** The service tier that this offering is of; absent: the provider's default one. */
  tier?: EndpointTier;
}

export interface EndpointTier {
  /** As in `service_tier`: `priority`, `flex`, `scale`, `ultrafast`. */
  name: string;
  /** What an answer costs that the upstream says it gave in its default tier all the same. */
  defaultPricing: Pricing | null;
}

export interface Model {
  /** `author/slug`. */
  id: string;
  name: string;
  /** In the order of the configuration. Empty only for `author/slug:free` of a model that nobody offers for nothing. */
  endpoints: readonly Endpoint[];
  /** The suffix that `find` was asked with and that is a way of routing (`author/slug:nitro`); the id is without it. */
  variant?: RoutingVariant;
  /** `find` was asked for the newest of a family (`~author/family-latest`), and this is it. */
  latest?: true;
  /** What is known of it apart from the configuration; absent: nothing. */
  facts?: ModelFacts;
}

/** `nitro`: by throughput; `floor`: by price; `exacto`: by the validity of tool calls (`inference/routing`). */
export type RoutingVariant = 'nitro' | 'floor' | 'exacto';

/** `~author/family-latest` and the model that it stands for now. */
export interface LatestModel {
  id: string;
  family: string;
  target: Model;
}

export interface Catalog {
  /** Every model that is listed: those of the yaml first, then those that the facts know of switched-on providers. */
  readonly models: readonly Model[];
  readonly latest: readonly LatestModel[];
  /** The configured providers, in their order. */
  readonly providers: readonly Provider[];
  /** Providers whose models lost the catalog's prices to a `base_url`, and how many. */
  readonly unpriced: readonly { provider: string; models: number }[];
  /**
   * The model that a name means (`names.ts`); takes as long with ten models as with ten thousand. The id of what comes
   * back is the full one, without a suffix that asks for a way of routing.
   */
  find(name: string): Model | undefined;
  /** The price of a model that this provider's upstream called by itself; undefined, or absent: unknown. */
  pricingOfCalled?(provider: Provider, upstreamName: string): Pricing | undefined;
  /** For a name that means nothing: the id of a listed model that was probably meant. */
  near(name: string): string | undefined;
}

/**
 * @param settings the configured providers; @param providers the same, made by `providersFrom`
 * @param kinds decides whose bare names are whose, also where that vendor's models come from another provider
 * @param facts what is known of models; default: what comes with the package
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
    if (!provider) throw new Error(`the provider ${one.id} was not made`);
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
  const names = new Names({ models, open, kinds, facts });
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

/** Providers whose models are found by their ids and not listed: settings, and what `providersFrom` makes of them. */
export interface StandIns {
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

/** Providers that take any name of their author offer it too, unless they have listed it. */
function modelOf(id: string, { name, facts, endpoints }: Listed, open: readonly Provider[]): Model {
  const others = openEndpoints(open, id).filter((one) => endpoints.every(({ provider }) => provider !== one.provider));
  return Object.freeze({
    id,
    name: name ?? facts?.name ?? id,
    endpoints: Object.freeze([...endpoints, ...others]),
    ...(facts !== null && { facts }),
  });
}
