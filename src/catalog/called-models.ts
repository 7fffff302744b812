/**
 * Prices of models that an upstream itself calls within a reply (an advisor, a fallback), by the names that it reports.
 */
import type { Pricing, ProviderSettings } from '../base/config.ts';
import type { Provider } from '../providers/index.ts';
import type { Endpoint } from './catalog.ts';
import type { Facts } from './facts.ts';
import { priceAt } from './offerings.ts';

export class CalledModels {
  readonly #endpoints: readonly Endpoint[];
  readonly #settings: ReadonlyMap<string, ProviderSettings>;
  readonly #facts: Facts;
  /** Cached by provider and name. Replies with such calls are rare and involve few models. */
  readonly #known = new Map<string, Pricing | undefined>();

  constructor(endpoints: readonly Endpoint[], settings: readonly ProviderSettings[], facts: Facts) {
    this.#endpoints = endpoints.filter(({ tier }) => tier === undefined);
    this.#settings = new Map(settings.map((each) => [each.id, each]));
    this.#facts = facts;
  }

  /** Undefined if unknown. */
  pricing(provider: Provider, name: string): Pricing | undefined {
    const key = `${provider.id} ${name}`;
    if (this.#known.has(key)) return this.#known.get(key);
    const pricing = this.#find(provider, name);
    if (this.#known.size < MOST_KNOWN) this.#known.set(key, pricing);
    return pricing;
  }

  /** The provider's own price, listed or shipped, else that of another provider. */
  #find(provider: Provider, name: string): Pricing | undefined {
    const named = this.#endpoints.filter((endpoint) => endpoint.pricing !== null && isNamed(endpoint, name));
    const own = named.find((endpoint) => endpoint.provider.id === provider.id);
    const price = own?.pricing ?? this.#shipped(provider, name);
    return price ?? (named.find(({ provider: { kind } }) => kind === provider.kind) ?? named[0])?.pricing ?? undefined;
  }

  #shipped(provider: Provider, name: string): Pricing | undefined {
    const settings = this.#settings.get(provider.id);
    if (settings === undefined) return undefined;
    const wanted = plainName(name);
    for (const { offers } of this.#facts.models) {
      const offer = offers.find((each) => each.provider === settings.kind && plainName(each.upstream_id) === wanted);
      const pricing = offer && priceAt(offer, settings, provider);
      if (pricing) return pricing;
    }
    return undefined;
  }
}

const MOST_KNOWN = 1_000;

/** Whether an upstream's model name refers to the endpoint's model. */
export function isNamed({ upstreamId, modelId }: Pick<Endpoint, 'upstreamId' | 'modelId'>, name: string): boolean {
  if (upstreamId === name) return true;
  const wanted = plainName(name);
  return plainName(upstreamId) === wanted || plainName(modelId) === wanted;
}

/**
 * The name without the additions of clouds and versions: `us.anthropic.claude-opus-4-8-20260115-v1:0`,
 * `claude-opus-4-8@20260115` and `anthropic/claude-opus-4.8` are one model.
 */
function plainName(name: string): string {
  return name
    .toLowerCase()
    .replace(/^.*\//, '')
    .replace(/^(?:[a-z]+\.)?[a-z]+\.(?=[a-z])/, '')
    .replace(/-v\d+(?::\d+)?$/, '')
    .replace(/@.*$/, '')
    .replace(/-\d{8}$/, '')
    .replaceAll('.', '-');
}
