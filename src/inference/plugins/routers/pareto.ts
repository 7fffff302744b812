/** `svc/pareto-code`: the cheapest model that codes well enough, among those that no other beats in both. */
import Type from 'typebox';
import { optional, range, word } from '../../../formats/conversation/loose-schema.ts';
import type { Offer } from '../../routing/router-models.ts';
import type { Plugin } from '../plugin.ts';
import { scored } from './ranking.ts';
import type { Router } from './router.ts';

export const paretoPlugin: Plugin = {
  id: 'pareto-router',
  parameters: {
    max_price: optional(Type.Number({ minimum: 0 })),
    min_coding_score: optional(range(0, 1)),
    price_source: optional(word(['prompt', 'weighted_avg'])),
  },
};

/** `min_coding_score` names a tier, whose models have at least this score. */
const TIERS = [
  { name: 'high', from: 0.66 },
  { name: 'medium', from: 0.33 },
  { name: 'low', from: 0 },
] as const;

export const paretoRouter: Router = {
  slug: 'svc/pareto-code',
  name: 'Pareto Code Router',
  plugin: 'pareto-router',
  strategy: 'pareto',
  choose(question) {
    const { settings } = question;
    const wanted = typeof settings['min_coding_score'] === 'number' ? settings['min_coding_score'] : 1;
    const tier = TIERS.find(({ from }) => wanted >= from)!;
    const priceOf = settings['price_source'] === 'weighted_avg' ? weightedPrice : promptPrice;
    const most = typeof settings['max_price'] === 'number' ? settings['max_price'] : Number.POSITIVE_INFINITY;
    const rated = scored(question.offers, 'coding', question)
      .map((each) => ({ ...each, price: priceOf(each.offer) }))
      .filter(({ score, price }) => score >= tier.from && price <= most && Number.isFinite(price))
      .toSorted((a, b) => a.price - b.price || b.score - a.score);
    const basis = rated.some(({ known }) => known)
      ? ''
      : '; no coding scores are configured, so prices stand in for them';
    return { offers: frontier(rated), reason: `coding tier ${tier.name}${basis}` };
  },
};

/** Those that are better than every cheaper one. @param rated cheapest first */
function frontier(rated: readonly { offer: Offer; score: number }[]): Offer[] {
  let best = -1;
  return rated.flatMap(({ offer, score }) => {
    if (score <= best) return [];
    best = score;
    return [offer];
  });
}

/** USD per million prompt tokens. */
function promptPrice({ promptPrice }: Offer): number {
  return promptPrice;
}

/** USD per million tokens, three quarters of them prompt: a typical request has 1,000 tokens. */
function weightedPrice({ price }: Offer): number {
  return price * 1000;
}
