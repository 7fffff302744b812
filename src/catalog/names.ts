/**
 * Resolves model names, in this order: a listed id; an alias of the configuration; a canonical slug, alias, dated name or a provider's own name of a
 * listed model, with or without its author; `~author/family-latest`; a name of an author whose provider lists no
 * models; one of these with a suffix; a vendor's bare name; any of these after `models/`. All listed names are in one
 * map, so the time does not depend on the number of models.
 */
import { nearest } from '../base/nearest.ts';
import type { Provider, ProviderKind } from '../providers/index.ts';
import type { Endpoint, LatestModel, Model, RoutingVariant } from './catalog.ts';
import type { Facts, ModelFacts } from './facts.ts';
import { prefixed, RESOURCE, unlistedEndpoint } from './offerings.ts';
import { costsNothing } from './pricing.ts';

/** Suffixes that select routing or a kind of endpoint; never part of an upstream's name. */
const VARIANT = /:(free|nitro|floor|exacto|online|extended|thinking)$/;
const OPEN_NAME = /^[A-Za-z0-9~._:@+-]{1,128}\/[A-Za-z0-9~._:@+/-]{1,200}$/;
const LONGEST_NAME = 400;
const MOST_NEAR = 200;

interface NamedModels {
  models: readonly Model[];
  /** Ids of models by the further names that the configuration gives them. */
  aliases: ReadonlyMap<string, string>;
  /** Providers that accept any model of their author. */
  open: readonly Provider[];
  kinds: readonly ProviderKind[];
  facts: Facts;
}

export class Names {
  readonly latest: readonly LatestModel[];
  readonly #byName = new Map<string, Model>();
  readonly #free = new WeakMap<Model, Model>();
  /** Ids of listed models by the part after the author. */
  readonly #slugs = new Map<string, string>();
  /** Cached, because a client with a wrong name repeats it. */
  readonly #near = new Map<string, string | undefined>();
  readonly #open: readonly Provider[];
  readonly #vendors: readonly ProviderKind[];

  constructor({ models, aliases, open, kinds, facts }: NamedModels) {
    this.#open = open;
    this.#vendors = kinds.filter(({ bareModels, author }) => bareModels !== undefined && author !== undefined);
    for (const model of models) this.#byName.set(model.id, model);
    for (const [alias, id] of aliases) {
      if (!this.#byName.has(alias)) this.#byName.set(alias, this.#byName.get(id)!);
    }
    for (const model of models) this.#enterOtherNames(model);
    for (const { id } of models) {
      const slug = id.slice(id.indexOf('/') + 1);
      if (!this.#slugs.has(slug)) this.#slugs.set(slug, id);
    }
    this.latest = this.#enterLatest(models, facts);
  }

  find(name: string): Model | undefined {
    if (name.length > LONGEST_NAME) return undefined;
    const found = this.#whole(name) ?? this.#withVariant(name) ?? this.#byVendorPattern(name);
    if (found !== undefined || !name.startsWith(RESOURCE)) return found;
    return this.find(name.slice(RESOURCE.length));
  }

  /** For a name that `find` does not resolve. */
  near(name: string): string | undefined {
    if (name.length > LONGEST_NAME) return undefined;
    if (this.#near.has(name)) return this.#near.get(name);
    if (this.#near.size >= MOST_NEAR) this.#near.clear();
    const near = this.#nearest(name.replace(VARIANT, ''));
    this.#near.set(name, near);
    return near;
  }

  #nearest(name: string): string | undefined {
    const id = name.includes('/') ? nearest(name, this.#slugs.values()) : undefined;
    if (id !== undefined) return id;
    const slug = nearest(name.slice(name.lastIndexOf('/') + 1), this.#slugs.keys());
    return slug === undefined ? undefined : this.#slugs.get(slug);
  }

  #whole(name: string): Model | undefined {
    return this.#byName.get(name) ?? this.#openModel(name);
  }

  /** Removes one suffix; the rest must resolve without one, so names with several suffixes need their own entry. */
  #withVariant(name: string): Model | undefined {
    const variant = VARIANT.exec(name)?.[1];
    if (variant === undefined) return undefined;
    const base = name.slice(0, -variant.length - 1);
    const model = this.#whole(base) ?? this.#byVendorPattern(base);
    if (model === undefined) return undefined;
    if (variant === 'free') return this.#freeOf(model);
    // `extended` and `thinking` are separate models where they exist, and `online` would require a search.
    return isRouting(variant) ? Object.freeze({ ...model, variant }) : undefined;
  }

  #freeOf(model: Model): Model {
    let free = this.#free.get(model);
    if (free === undefined) {
      free = Object.freeze({
        ...model,
        endpoints: Object.freeze(model.endpoints.filter(({ pricing }) => costsNothing(pricing))),
      });
      this.#free.set(model, free);
    }
    return free;
  }

  #byVendorPattern(name: string): Model | undefined {
    if (name.includes('/')) return undefined;
    const vendor = this.#vendors.find(({ bareModels }) => bareModels!.test(name));
    return vendor && this.#whole(`${vendor.author}/${name}`);
  }

  #openModel(id: string): Model | undefined {
    if (this.#open.length === 0 || !OPEN_NAME.test(id)) return undefined;
    const endpoints = openEndpoints(this.#open, id);
    return endpoints.length === 0 ? undefined : Object.freeze({ id, name: id, endpoints: Object.freeze(endpoints) });
  }

  /** Existing entries win: ids come first, and of two models with one name the first is used. */
  #enterOtherNames(model: Model): void {
    const { facts } = model;
    if (facts === undefined) return;
    const author = facts.id.slice(0, facts.id.indexOf('/'));
    const slug = facts.id.slice(author.length + 1);
    const upstreamIds = facts.offers.map(({ upstream_id }) => upstream_id);
    for (const name of [facts.id, slug, facts.canonical_slug, ...facts.aliases, ...upstreamIds]) {
      this.#enter(author, name, model);
    }
    for (const name of facts.dated) this.#enter(author, name, pinned(model, name, facts));
  }

  #enter(author: string, name: string, model: Model): void {
    for (const each of new Set([name, ...prefixed(author, [name])])) {
      if (!this.#byName.has(each)) this.#byName.set(each, model);
    }
  }

  /** The facts list a family newest first, so the first offered row is the latest. */
  #enterLatest(models: readonly Model[], facts: Facts): LatestModel[] {
    const offered = new Map(models.map((model) => [model.id, model]));
    const latest = new Map<string, LatestModel>();
    for (const { id: modelId, family } of facts.models) {
      const target = offered.get(modelId);
      if (family === null || target === undefined) continue;
      const id = `~${modelId.slice(0, modelId.indexOf('/'))}/${family}-latest`;
      if (!latest.has(id)) latest.set(id, Object.freeze({ id, family, target }));
    }
    for (const { id, target } of latest.values()) {
      if (!this.#byName.has(id)) this.#byName.set(id, Object.freeze({ ...target, latest: true as const }));
    }
    return [...latest.values()];
  }
}

/**
 * Endpoints of providers without a model list, by the author of the name. Our own suffixes are not part of such a name.
 */
export function openEndpoints(open: readonly Provider[], id: string): Endpoint[] {
  if (VARIANT.test(id)) return [];
  const slash = id.indexOf('/');
  const author = id.slice(0, slash);
  return open
    .filter(({ kind }) => kind.author === author)
    .map((provider) => unlistedEndpoint(provider, id, id.slice(slash + 1)));
}

/** The model with its vendor's endpoints requesting exactly this version, unless the yaml sets the upstream name. */
function pinned(model: Model, name: string, { id, offers }: ModelFacts): Model {
  const author = id.slice(0, id.indexOf('/'));
  const endpoints = model.endpoints.map((endpoint) => {
    const isListed = offers.some(({ upstream_id }) => upstream_id === endpoint.upstreamId);
    return isListed && endpoint.provider.kind.author === author
      ? Object.freeze({ ...endpoint, upstreamId: name })
      : endpoint;
  });
  return Object.freeze({ ...model, endpoints: Object.freeze(endpoints) });
}

function isRouting(variant: string): variant is RoutingVariant {
  return variant === 'nitro' || variant === 'floor' || variant === 'exacto';
}
