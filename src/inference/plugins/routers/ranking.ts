/** Orders offers by price and quality. Pure; every result has all offers that it was given. */
import type { Offer } from '../../routing/router-models.ts';
import type { RouterQuestion } from './router.ts';

export const COST_TIERS = ['low', 'medium', 'high', 'xhigh', 'max'] as const;
export type CostTier = (typeof COST_TIERS)[number];

type Scores = Pick<RouterQuestion, 'score'>;

/** Offers with a known price, cheapest first, each with its rank from 0 to 1. */
export function byPrice(offers: readonly Offer[]): { offer: Offer; place: number }[] {
  const priced = offers.filter(({ price }) => Number.isFinite(price)).toSorted((a, b) => a.price - b.price);
  return priced.map((offer, index) => ({ offer, place: (index + 0.5) / priced.length }));
}

/**
 * Sorts offers by price band (each has a fifth of the offers): the wanted band with its best offers first, then the other
 * bands, nearest first, cheaper before more expensive. Offers without a known price come last.
 */
export function inTier(offers: readonly Offer[], tier: CostTier, scores: Scores): readonly Offer[] {
  const wanted = COST_TIERS.indexOf(tier);
  const bands = COST_TIERS.map((): Offer[] => []);
  for (const { offer, place } of byPrice(offers)) bands[Math.min(4, Math.floor(place * 5))]!.push(offer);
  const near = bands
    .map((band, index) => ({ band, index }))
    .toSorted((a, b) => Math.abs(a.index - wanted) - Math.abs(b.index - wanted) || a.index - b.index);
  const unpriced = offers.filter(({ price }) => !Number.isFinite(price));
  return [...near.flatMap(({ band }) => bestFirst(band, scores)), ...bestFirst(unpriced, scores)];
}

/** By configured quality, then the newer model, then the larger context. */
export function bestFirst(offers: readonly Offer[], { score }: Scores): Offer[] {
  const keys = new Map(
    offers.map((offer) => {
      const { id, facts, endpoints } = offer.model;
      const context = Math.max(0, ...endpoints.map(({ contextLength }) => contextLength ?? 0));
      return [offer, [score(id, 'quality') ?? -1, facts?.created ?? 0, context]];
    }),
  );
  return offers.toSorted((a, b) => {
    const [left, right] = [keys.get(a)!, keys.get(b)!];
    const at = left.findIndex((value, index) => value !== right[index]);
    return at === -1 ? 0 : right[at]! - left[at]!;
  });
}

/**
 * The score of each offer. If no offer has a configured one, its rank by price is its score. If some have, the others are left
 * out, because nothing is known about them.
 */
export function scored(
  offers: readonly Offer[],
  kind: 'quality' | 'coding',
  { score }: Scores,
): { offer: Offer; score: number; known: boolean }[] {
  const known = offers.flatMap((offer) => {
    const own = score(offer.model.id, kind);
    return own === undefined ? [] : [{ offer, score: own, known: true }];
  });
  if (known.length > 0) return known;
  return byPrice(offers).map(({ offer, place }) => ({ offer, score: place, known: false }));
}
