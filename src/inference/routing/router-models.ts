/**
 * Router models as routing sees them: names that stand for a choice among all models that may serve a request. The rules
 * by which they choose are plugins (`plugins/routers`).
 */
import type { Endpoint, Model } from '../../catalog/index.ts';
import type { PipelineStage } from '../plugins/plugin.ts';
import type { AcceptedRequest } from '../request.ts';
import { type PreparedEndpoint, prepare } from './prepared.ts';

/** A model that may serve the request under every rule of its caller. */
export interface Offer {
  readonly model: Model;
  /** USD of a typical request at its cheapest endpoint; Infinity if unknown. */
  readonly price: number;
  /** USD per million prompt tokens at that endpoint; Infinity if unknown. */
  readonly promptPrice: number;
}

export interface RouterFacts {
  readonly offers: readonly Offer[];
  readonly request: AcceptedRequest;
  /** The model that served the request's session last, if that has an id. */
  readonly sessionModel: string | undefined;
  /** Like `Math.random`. */
  random(): number;
}

export interface RoutedModels {
  /** In the order in which they are tried. */
  readonly models: readonly Model[];
  readonly strategy: 'auto' | 'pareto' | 'free' | 'fusion';
  /** Its slug, for the row. */
  readonly slug: string;
  /** The decision, for the routing metadata. */
  readonly stage: PipelineStage;
}

/** Undefined for a name that is no router model. @throws GatewayError 404 if no offer fits the router's settings */
export type RouterModels = (name: string, facts: () => RouterFacts) => RoutedModels | undefined;

/** @param admitted the endpoints of a model that may serve the request */
export function offersOf(
  models: readonly Model[],
  admitted: (model: Model) => readonly PreparedEndpoint[],
): readonly Offer[] {
  return models.flatMap((model) => {
    if (!model.endpoints.some(({ outputModalities }) => outputModalities?.includes('text') ?? true)) return [];
    let cheapest: PreparedEndpoint | undefined;
    for (const each of admitted(model)) if (cheapest === undefined || each.price < cheapest.price) cheapest = each;
    return cheapest === undefined ? [] : [offerAt(model, cheapest)];
  });
}

/** The same for a list of models, without the rest of a request. */
export function offersWhere(models: readonly Model[], isAllowed: (endpoint: Endpoint) => boolean): readonly Offer[] {
  return offersOf(models, (model) => prepare(model).filter(({ endpoint }) => isAllowed(endpoint)));
}

function offerAt(model: Model, { endpoint: { pricing }, price }: PreparedEndpoint): Offer {
  return { model, price, promptPrice: pricing === null ? Number.POSITIVE_INFINITY : Number(pricing.prompt) / 1e12 };
}
