/**
 * What can be asked for: models, and for each the endpoints (one provider's offering) that serve it. Built from the
 * configuration as a whole, frozen, and replaced as a whole on a reload, so that a request sees one or the other.
 */
import type { DataPolicy, ModelSettings, Pricing, ProviderSettings } from '../base/config.ts';
import { UNKNOWN_DATA_POLICY } from '../base/config.ts';
import type { FormatId } from '../formats/conversation/conversation.ts';
import type { Provider, ProviderKind } from '../providers/index.ts';

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
  /** In the order of the configuration, never empty. */
  endpoints: readonly Endpoint[];
  /** The suffix that `find` was asked with and that is a way of routing (`author/slug:nitro`); the id is without it. */
  variant?: RoutingVariant;
}

/** `nitro`: by throughput; `floor`: by price; `exacto`: by the validity of tool calls (`inference/routing`). */
export type RoutingVariant = 'nitro' | 'floor' | 'exacto';

export interface Catalog {
  /** Every model that is listed by its name, in the order of the configuration. */
  readonly models: readonly Model[];
  /**
   * The model of a name: a listed id, a name of an author whose provider lists none (`openai/<any>`), or a vendor's bare
   * name (`gpt-4o`). The id of the model that comes back is the full one.
   */
  find(name: string): Model | undefined;
}

/** A catalog entry's suffix that asks for a way of routing; never part of an upstream's name. */
const VARIANT = /:(free|nitro|floor|exacto|online|extended|thinking)$/;
const OPEN_NAME = /^[A-Za-z0-9~._:@+-]{1,128}\/[A-Za-z0-9~._:@+/-]{1,200}$/;

/**
 * @param settings the configured providers; @param providers the same, made by `providersFrom`
 * @param kinds decides whose bare names are whose, also where that vendor's models come from another provider
 */
export function buildCatalog(
  settings: readonly ProviderSettings[],
  providers: readonly Provider[],
  kinds: readonly ProviderKind[],
): Catalog {
  const byId = new Map(providers.map((provider) => [provider.id, provider]));
  const open: Provider[] = [];
  const listed = new Map<string, { name: string | null; endpoints: Endpoint[] }>();
  for (const { id, openEnded, models } of settings) {
    const provider = byId.get(id);
    if (!provider) throw new Error(`the provider ${id} was not made`);
    if (openEnded) open.push(provider);
    for (const model of models) {
      const entry = listed.get(model.id) ?? { name: null, endpoints: [] };
      entry.name ??= model.name;
      entry.endpoints.push(endpointOf(provider, model));
      listed.set(model.id, entry);
    }
  }
  const models = new Map<string, Model>();
  for (const [id, { name, endpoints }] of listed) {
    models.set(id, modelOf(id, name, [...endpoints, ...openEndpoints(open, id)]));
  }
  const vendors = kinds.filter(({ bareModels, author }) => bareModels !== undefined && author !== undefined);
  const full = (id: string): Model | undefined => {
    const model = models.get(id);
    if (model) return model;
    const endpoints = open.length > 0 && OPEN_NAME.test(id) ? openEndpoints(open, id) : [];
    return endpoints.length > 0 ? modelOf(id, null, endpoints) : undefined;
  };
  return Object.freeze({
    models: Object.freeze([...models.values()]),
    find(name: string) {
      const found = full(name);
      if (found || name.includes('/')) return found;
      const vendor = vendors.find(({ bareModels }) => bareModels!.test(name));
      return vendor && full(`${vendor.author}/${name}`);
    },
  });
}

function modelOf(id: string, name: string | null, endpoints: readonly Endpoint[]): Model {
  return Object.freeze({ id, name: name ?? id, endpoints: Object.freeze(endpoints) });
}

function endpointOf(provider: Provider, model: ModelSettings): Endpoint {
  const { id, name: _name, speaks, ...facts } = model;
  const forms = speaks && { speaks: speaks as readonly FormatId[] };
  return Object.freeze({ ...facts, ...forms, id: `${provider.id}:${id}`, provider, modelId: id });
}

/** Offerings of providers that list no models; nothing is known of them but the name. */
function openEndpoints(open: readonly Provider[], id: string): Endpoint[] {
  const slash = id.indexOf('/');
  const author = id.slice(0, slash);
  const upstreamId = id.slice(slash + 1);
  if (VARIANT.test(upstreamId)) return [];
  return open
    .filter(({ kind }) => kind.author === author)
    .map((provider) =>
      Object.freeze({
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
      }),
    );
}
