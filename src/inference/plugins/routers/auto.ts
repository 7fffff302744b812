/** `svc/auto` and `svc/auto-beta`: a model of the wanted price band; `svc/jev` is the same under other names. */
import Type, { type TProperties } from 'typebox';
import { type Fields, listOf } from '../../../formats/conversation/fields.ts';
import { optional, word } from '../../../formats/conversation/loose-schema.ts';
import type { Offer } from '../../routing/router-models.ts';
import type { Plugin } from '../plugin.ts';
import { allowed, checkPatterns, patternLists } from './patterns.ts';
import { COST_TIERS, type CostTier, inTier } from './ranking.ts';
import type { Router, RouterQuestion } from './router.ts';

const costTier = { cost_tier: optional(word(COST_TIERS)) };
const tradeoff = { cost_quality_tradeoff: optional(Type.Integer({ minimum: 0, maximum: 10 })) };
/** As documented for requests without a cost setting: nearly the cheapest. */
const DEFAULT_TRADEOFF = 9;

function pluginOf(id: string, lists: readonly string[], parameters: TProperties): Plugin {
  return {
    id,
    parameters: { ...parameters, ...patternLists(...lists) },
    check: (settings, path) => checkPatterns(settings, path, lists),
  };
}

const LISTS = ['allowed_models', 'excluded_models'];

export const autoPlugins: readonly Plugin[] = [
  pluginOf('auto-router', LISTS, { ...costTier, ...tradeoff, pin_model: optional(Type.Boolean()) }),
  pluginOf('auto-beta-router', LISTS, { ...costTier, ...tradeoff }),
  pluginOf('jev-router', ['models', ...LISTS], costTier),
];

function auto(slug: string, name: string, plugin: string): Router {
  return {
    slug,
    name,
    plugin,
    strategy: 'auto',
    choose: (question) => {
      const { allowed_models, excluded_models } = question.settings;
      return inBand(allowed(question.offers, allowed_models, excluded_models), question);
    },
  };
}

export const autoRouters: readonly Router[] = [
  auto('svc/auto', 'Auto Router', 'auto-router'),
  auto('svc/auto-beta', 'Auto Router (beta)', 'auto-beta-router'),
  {
    slug: 'svc/jev',
    name: 'Jev Router',
    plugin: 'jev-router',
    strategy: 'auto',
    choose(question) {
      const { models, allowed_models, excluded_models } = question.settings;
      const wanted = [...listOf(models), ...listOf(allowed_models)];
      const matching = allowed(question.offers, wanted, []);
      // A list that matches nothing is ignored; an exclusion is not.
      return inBand(allowed(matching.length > 0 ? matching : question.offers, [], excluded_models), question);
    },
  },
];

function inBand(offers: readonly Offer[], question: RouterQuestion) {
  const tier = tierOf(question.settings);
  const ranked = inTier(offers, tier, question);
  const pinned = question.settings['pin_model'] === true ? pin(ranked, question.previousModel) : undefined;
  if (pinned !== undefined) return { offers: pinned, reason: 'the model of the last answer' };
  return { offers: ranked, reason: `price band ${tier}` };
}

/** Undefined if the model is not among the offers. */
function pin(offers: readonly Offer[], modelId: string | undefined): readonly Offer[] | undefined {
  const pinned = modelId === undefined ? undefined : offers.find(({ model }) => model.id === modelId);
  return pinned && [pinned, ...offers.filter((offer) => offer !== pinned)];
}

function tierOf({ cost_tier: tier, cost_quality_tradeoff: number }: Fields): CostTier {
  if (typeof tier === 'string') return tier as CostTier;
  const cheapness = typeof number === 'number' ? number : DEFAULT_TRADEOFF;
  return COST_TIERS[Math.min(4, Math.floor((10 - cheapness) / 2))]!;
}
