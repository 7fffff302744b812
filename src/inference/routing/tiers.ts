/**
 * Service tiers: an offering of a provider that is faster or cheaper at another price. An endpoint of a tier is a
 * candidate only for requests that ask for the tier; the default tier is the fallback for all of them.
 */
import type { Endpoint, RoutingVariant } from '../../catalog/index.ts';
import type { EncodeTarget } from '../../formats/conversation/format.ts';

/** The tiers that each value tries before the default one. Other values (`auto`, `default`, unknown ones) try none. */
const CHAINS: Readonly<Record<string, readonly string[]>> = {
  ultrafast: ['ultrafast', 'priority'],
  priority: ['priority'],
  fast: ['priority'],
  flex: ['flex'],
  scale: ['scale'],
};

/** Tiers that a routing variant may also use. */
const OF_VARIANT: Readonly<Partial<Record<RoutingVariant, string>>> = { nitro: 'priority', floor: 'flex' };

export interface WantedTiers {
  /** The wanted tiers, best first. */
  chain: readonly string[];
  /** Tiers that rank like the default. */
  also: readonly string[];
}

const NONE: WantedTiers = { chain: [], also: [] };

export function wantedTiers(serviceTier: string | undefined, variant: RoutingVariant | undefined): WantedTiers {
  const also = variant === undefined ? undefined : OF_VARIANT[variant];
  const chain = serviceTier === undefined ? undefined : CHAINS[serviceTier];
  if (also === undefined && chain === undefined) return NONE;
  return { chain: chain ?? [], also: also === undefined ? [] : [also] };
}

/** The rank of the endpoint's tier, 0 the best; undefined for a tier that the request does not ask for. */
export function tierRank(tier: string | undefined, { chain, also }: WantedTiers): number | undefined {
  if (tier === undefined || also.includes(tier)) return chain.length;
  const rank = chain.indexOf(tier);
  return rank < 0 ? undefined : rank;
}

/**
 * The tier to request from the upstream: one whose price the catalog has. The client's own tier is not passed on
 * elsewhere, since the upstream would charge more than is reserved.
 */
export function tierFor({ tier }: Endpoint, wanted: string | undefined): EncodeTarget['serviceTier'] {
  if (tier !== undefined) return tier.name;
  return wanted !== undefined && wanted in CHAINS ? null : undefined;
}

/**
 * The endpoint with the prices of the tier that served. An upstream may serve its default tier although another was
 * requested, and then charges the default price.
 * @param served the tier that the answer names
 */
export function asServed(endpoint: Endpoint, served: string | null | undefined): Endpoint {
  const { tier } = endpoint;
  if (tier === undefined || (served !== 'default' && served !== 'standard')) return endpoint;
  return { ...endpoint, pricing: tier.defaultPricing };
}
