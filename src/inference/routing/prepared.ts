/** Routing data of endpoints, prepared once per model of the catalog. */
import type { Pricing } from '../../base/config.ts';
import type { Price } from '../../base/money.ts';
import type { Endpoint, Model } from '../../catalog/index.ts';

export interface PreparedEndpoint {
  endpoint: Endpoint;
  /**
   * Lower-case names of the endpoint: its provider's, and those with a variant after a slash (`acme/us`, `acme/fp8`).
   */
  slugs: ReadonlySet<string>;
  /** USD of a typical request; Infinity if the price is unknown. */
  price: number;
  parameters: ReadonlySet<string> | null;
  /** Position in the configuration, so that ties keep their order. */
  index: number;
}

/** The typical request for price comparison: 1,000 tokens, three quarters of them prompt. */
const TYPICAL_PROMPT = 750n;
const TYPICAL_COMPLETION = 250n;

/** Models are frozen and live as long as their catalog; the prepared data goes with them. */
const prepared = new WeakMap<readonly Endpoint[], readonly PreparedEndpoint[]>();

export function prepare({ endpoints }: Model): readonly PreparedEndpoint[] {
  let found = prepared.get(endpoints);
  if (found === undefined) {
    found = endpoints.map(prepareEndpoint);
    prepared.set(endpoints, found);
  }
  return found;
}

export function prepareEndpoint(endpoint: Endpoint, index: number): PreparedEndpoint {
  const { provider, region, quantization, tier, supportedParameters, pricing } = endpoint;
  const variants = [region, quantization, tier?.name].filter((variant) => variant !== null && variant !== undefined);
  return {
    endpoint,
    slugs: new Set(
      [provider.id, provider.name, ...variants.map((variant) => `${provider.id}/${variant}`)].map((slug) =>
        slug.toLowerCase(),
      ),
    ),
    price: typicalPrice(pricing),
    parameters: supportedParameters === null ? null : new Set(supportedParameters),
    index,
  };
}

/** USD of the typical request. */
function typicalPrice(pricing: Pricing | null): number {
  if (pricing === null) return Number.POSITIVE_INFINITY;
  const { prompt, completion, request = 0n } = pricing;
  return usd(TYPICAL_PROMPT * prompt + TYPICAL_COMPLETION * completion + request);
}

function usd(price: Price): number {
  return Number(price) / 1e18;
}

/** Whether one of `names` matches the endpoint. A provider's name matches all its endpoints. */
export function isNamed({ slugs }: PreparedEndpoint, names: readonly string[]): boolean {
  return positionIn(slugs, names) < names.length;
}

/** The position of the first name that matches; the list's length if none does. */
export function positionIn(slugs: ReadonlySet<string>, names: readonly string[]): number {
  for (let position = 0; position < names.length; position++)
    if (slugs.has(names[position]!.toLowerCase())) return position;
  return names.length;
}
