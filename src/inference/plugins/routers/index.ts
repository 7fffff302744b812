/**
 * Router models: `svc/auto` and the like choose a model of the catalog by rules on its facts, prices and configured
 * scores. Each is a router, and most have a plugin with their settings.
 */
import { GatewayError } from '../../../base/errors.ts';
import { toWireName } from '../../../base/namespace.ts';
import { fieldsOf, listOf, textOrUndefined } from '../../../formats/conversation/fields.ts';
import type { RequestFacts } from '../../../formats/conversation/format.ts';
import { type AcceptedRequest, isConversation } from '../../request.ts';
import type { RoutedModels, RouterFacts, RouterModels } from '../../routing/router-models.ts';
import type { Plugin } from '../plugin.ts';
import { autoPlugins, autoRouters } from './auto.ts';
import { freeRouter } from './free.ts';
import { fusionRouter } from './fusion.ts';
import { paretoPlugin, paretoRouter } from './pareto.ts';
import type { ModelScore, Router } from './router.ts';
import { switchyardPlugin, switchyardRouter } from './switchyard.ts';

export const routerPlugins: readonly Plugin[] = [...autoPlugins, paretoPlugin, switchyardPlugin];

export const ROUTERS: readonly Router[] = [...autoRouters, freeRouter, fusionRouter, paretoRouter, switchyardRouter];

const BY_SLUG = new Map(ROUTERS.map((router) => [router.slug, router]));

export function isRouterModel(name: string): boolean {
  return BY_SLUG.has(toWireName(name));
}

/** A router model tries at most this many models. */
const MAX_MODELS = 5;

/** @param score of a model, as currently configured */
export function routerModels(score: ModelScore): RouterModels {
  return (name, facts) => {
    const router = BY_SLUG.get(toWireName(name));
    return router && routed(router, facts(), score);
  };
}

function routed(router: Router, facts: RouterFacts, score: ModelScore): RoutedModels {
  const { offers, request, sessionModel, random } = facts;
  const requested = request.plugins?.find(({ plugin }) => plugin.id === router.plugin);
  const choice = router.choose({
    ...{ offers, score, random },
    settings: requested?.settings ?? {},
    ...historyOf(request),
    demanding: isDemanding(request.facts),
  });
  if (choice.offers.length === 0 && !choice.passes) throw nothingFits(router, offers.length, requested?.path);
  const kept = choice.offers.find(({ model }) => model.id === sessionModel);
  const ordered = kept === undefined ? choice.offers : [kept, ...choice.offers.filter((offer) => offer !== kept)];
  const models = ordered.slice(0, MAX_MODELS).map(({ model }) => model);
  const reason = kept === undefined ? choice.reason : 'the model of the session';
  return {
    models,
    strategy: router.strategy,
    slug: router.slug,
    stage: {
      type: 'plugin',
      name: router.plugin ?? router.slug,
      summary: models[0] === undefined ? reason : `${models[0].id}: ${reason}`,
      data: { router: router.slug, reason, offered: offers.length, models: models.map(({ id }) => id) },
    },
  };
}

function isDemanding({ needs }: RequestFacts): boolean {
  return needs !== undefined && needs.features.length + needs.inputs.length > 0;
}

/** What routers read of the history. */
function historyOf(request: AcceptedRequest): { continuesStep: boolean; previousModel: string | undefined } {
  if (!isConversation(request)) return { continuesStep: false, previousModel: undefined };
  const { history } = request.format;
  const items = listOf(request.document.structure[history.root]);
  const answer = items.findLast((item) => history.item(item).kind === 'assistant');
  return {
    continuesStep: items.length > 0 && history.item(items.at(-1)).kind === 'result',
    previousModel: textOrUndefined(fieldsOf(answer)['model']),
  };
}

function nothingFits({ slug }: Router, offered: number, path: string | undefined): GatewayError {
  const problem =
    offered === 0
      ? `${slug} has no model to choose from: none may serve this request`
      : `none of the ${offered} models that may serve this request fits the settings of ${slug}`;
  return new GatewayError('not_found', problem, {
    path: path ?? 'model',
    availability: { code: 'constraint_filtered', retryable: false, requested_models: [slug] },
  });
}
