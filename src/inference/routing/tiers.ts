/**
 * Service tiers (wire/chat.md, `service_tier`): an offering of a provider that is faster or cheaper at another price. An
 * endpoint of a tier is a candidate only for requests that ask for it, and the default tier stands behind all of them.
 */
import type { RoutingVariant } from '../../catalog/index.ts';

/** What each value looks for before the default; `auto`, `default` and unknown ones look for nothing. */
const CHAINS: Readonly<Record<string, readonly string[]>> = {
  ultrafast: ['ultrafast', 'priority'],
  priority: ['priority'],
  fast: ['priority'],
  flex: ['flex'],
  scale: ['scale'],
};

/** Tiers that a way of routing may use as well. */
const OF_VARIANT: Readonly<Partial<Record<RoutingVariant, string>>> = { nitro: 'priority', floor: 'flex' };

export interface WantedTiers {
  /** The wanted tiers, the best first. */
  chain: readonly string[];
  /** Tiers that are as good as the default. */
  also: readonly string[];
}

const NONE: WantedTiers = { chain: [], also: [] };

export function wantedTiers(serviceTier: string | undefined, variant: RoutingVariant | undefined): WantedTiers {
  const also = variant === undefined ? undefined : OF_VARIANT[variant];
  const chain = serviceTier === undefined ? undefined : CHAINS[serviceTier];
  if (also === undefined && chain === undefined) return NONE;
  return { chain: chain ?? [], also: also === undefined ? [] : [also] };
}

/** The endpoint's place among the wanted tiers, 0 the best; undefined: it is of a tier that nobody asked for. */
export function tierPlace(tier: string | undefined, { chain, also }: WantedTiers): number | undefined {
  if (tier === undefined || also.includes(tier)) return chain.length;
  const place = chain.indexOf(tier);
  return place < 0 ? undefined : place;
}

/** Whether the value names a tier that is priced apart, so that an endpoint of another tier must not pass it on. */
export function isPricedTier(serviceTier: string): boolean {
  return serviceTier in CHAINS;
}
