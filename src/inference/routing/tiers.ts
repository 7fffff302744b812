/**
 * Service tiers: an offering of a provider that is faster or cheaper at another price. An endpoint of a tier is a
 * candidate only for requests that ask for the tier; the default tier is the fallback for all of them.
 */
import type { RoutingVariant } from '../../catalog/index.ts';

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

/** Whether the value names a tier with its own price, so an endpoint of another tier must not pass it on. */
export function isPricedTier(serviceTier: string): boolean {
  return serviceTier in CHAINS;
}
