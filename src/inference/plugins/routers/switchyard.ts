/** `svc/switchyard`: a model by the kind of work, by one of several rules. */
import { invalidField } from '../../../base/errors.ts';
import { optional, word } from '../../../formats/conversation/loose-schema.ts';
import type { Offer } from '../../routing/router-models.ts';
import type { Plugin } from '../plugin.ts';
import { bestFirst, byPrice, inTier, scored } from './ranking.ts';
import type { Router, RouterQuestion } from './router.ts';

const ALGORITHMS = ['capability', 'stage', 'auto', 'random', 'composite', 'passthrough'] as const;
type Algorithm = (typeof ALGORITHMS)[number];

export const switchyardPlugin: Plugin = {
  id: 'switchyard-router',
  parameters: { algorithm: optional(word(ALGORITHMS)) },
  check({ judge_model: judge }, path) {
    if ((judge ?? undefined) !== undefined)
      throw invalidField(`${path}.judge_model`, 'is not supported by this gateway');
  },
};

export const switchyardRouter: Router = {
  slug: 'svc/switchyard',
  name: 'Switchyard Router',
  plugin: 'switchyard-router',
  strategy: 'auto',
  choose(question) {
    const algorithm = (question.settings['algorithm'] as Algorithm | null | undefined) ?? 'capability';
    return { offers: RULES[algorithm](question), reason: algorithm, passes: algorithm === 'passthrough' };
  },
};

const RULES: Readonly<Record<Algorithm, (question: RouterQuestion) => readonly Offer[]>> = {
  /** The best model, whatever it costs. */
  capability: (question) => {
    const rated = scored(question.offers, 'quality', question).toSorted((a, b) => b.score - a.score);
    return withRest(
      rated.map(({ offer }) => offer),
      question,
    );
  },
  /** A strong model plans and answers; the steps between, which only continue after a tool's result, get a cheaper one. */
  stage: (question) => inTier(question.offers, question.continuesStep ? 'medium' : 'max', question),
  /** A strong model for requests with tools, media or a wanted format, a cheap one for plain conversation. */
  auto: (question) => inTier(question.offers, question.demanding ? 'high' : 'low', question),
  random: ({ offers, random }) => shuffled(offers, random),
  /** The mean of quality and cheapness. */
  composite: (question) => {
    const places = new Map(byPrice(question.offers).map(({ offer, place }) => [offer, place]));
    const rated = scored(question.offers, 'quality', question).map(({ offer, score }) => ({
      offer,
      value: score + 1 - (places.get(offer) ?? 1),
    }));
    return withRest(
      rated.toSorted((a, b) => b.value - a.value).map(({ offer }) => offer),
      question,
    );
  },
  /** Chooses nothing: the request's other models are tried in their order. */
  passthrough: () => [],
};

/** Offers without a score come last. */
function withRest(ranked: readonly Offer[], question: RouterQuestion): readonly Offer[] {
  const taken = new Set(ranked);
  return [
    ...ranked,
    ...bestFirst(
      question.offers.filter((offer) => !taken.has(offer)),
      question,
    ),
  ];
}

export function shuffled(offers: readonly Offer[], random: () => number): Offer[] {
  const result = [...offers];
  for (let at = result.length - 1; at > 0; at--) {
    const other = Math.floor(random() * (at + 1));
    [result[at], result[other]] = [result[other]!, result[at]!];
  }
  return result;
}
