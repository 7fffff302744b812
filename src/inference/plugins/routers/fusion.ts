/** `svc/fusion`: the model that writes the answer of a fusion, and then those of its panel unless the request names it. */
import type { Offer } from '../../routing/router-models.ts';
import { bestFirst, byPrice, inTier, scored } from './ranking.ts';
import type { Router, RouterQuestion } from './router.ts';

export const PRESETS = ['general-high', 'general-budget', 'general-fast'] as const;
type Preset = (typeof PRESETS)[number];

export const fusionRouter: Router = {
  slug: 'svc/fusion',
  name: 'Fusion',
  plugin: 'fusion',
  strategy: 'fusion',
  choose(question) {
    const { preset, model } = question.settings;
    const named = (preset as Preset | null | undefined) ?? 'general-high';
    const ranked = ORDERS[named](question);
    if (typeof model !== 'string') return { offers: ranked, reason: named };
    return { offers: ranked.filter((offer) => offer.model.id === model), reason: 'the model of the settings' };
  },
};

const ORDERS: Readonly<Record<Preset, (question: RouterQuestion) => readonly Offer[]>> = {
  /** The best models, whatever they cost. */
  'general-high': (question) => {
    const rated = scored(question.offers, 'quality', question).toSorted((a, b) => b.score - a.score);
    const taken = new Set(rated.map(({ offer }) => offer));
    const others = question.offers.filter((offer) => !taken.has(offer));
    return [...taken, ...bestFirst(others, question)];
  },
  /** The best of the cheapest fifth. */
  'general-budget': (question) => inTier(question.offers, 'low', question),
  /** The cheapest, which are small and fast. */
  'general-fast': ({ offers }) => {
    const priced = byPrice(offers).map(({ offer }) => offer);
    return [...priced, ...offers.filter((offer) => !priced.includes(offer))];
  },
};
