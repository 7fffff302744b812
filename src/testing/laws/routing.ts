/** Routing without anything around it: a catalog from a few words, figures as a test wants them, chance from a list. */

import { DEFAULT_ACCOUNT } from '../../base/config/section-readers.ts';
import { loadConfig } from '../../base/config.ts';
import { GatewayError } from '../../base/errors.ts';
import { buildCatalog, type Catalog, type EndpointFigures, NO_FIGURES } from '../../catalog/index.ts';
import type { RequestFacts } from '../../formats/conversation/format.ts';
import { Credentials } from '../../inference/routing/credentials.ts';
import {
  Health,
  type Route,
  type RoutingParts,
  route,
  type SessionKey,
  Sessions,
} from '../../inference/routing/index.ts';
import { KINDS, providersFrom } from '../../providers/index.ts';
import { TestClock } from '../clock/clock.ts';

/** A provider; its models are `a/m` by default. The other members are the model's, as in the yaml. */
export interface RoutedProvider {
  id: string;
  name?: string;
  models?: string[];
  api_key?: string[];
  [member: string]: unknown;
}

export function catalogFrom(providers: readonly RoutedProvider[]): Catalog {
  const yaml = JSON.stringify({
    providers: providers.map(({ id, name = id, models = ['a/m'], api_key, ...model }) => ({
      id,
      name,
      kind: 'chat',
      base_url: 'http://127.0.0.1:1/v1',
      ...(api_key && { api_key }),
      models: models.map((each) => ({ id: each, upstream_id: each, ...model })),
    })),
  });
  const config = loadConfig({
    kinds: KINDS,
    env: { GATEHOUSE_CONFIG: 'a.yaml' },
    cwd: '/',
    cores: 1,
    readFile: () => yaml,
  });
  return buildCatalog(config.providers, providersFrom(config), KINDS);
}

export interface RoutingWorld extends RoutingParts {
  clock: TestClock;
}

export function routingWorld(
  providers: readonly RoutedProvider[],
  figures: Record<string, Partial<EndpointFigures>> = {},
): RoutingWorld {
  const clock = new TestClock();
  const health = new Health(clock);
  return {
    clock,
    catalog: catalogFrom(providers),
    health,
    credentials: new Credentials(health),
    statistics: { of: (id) => ({ ...NO_FIGURES, ...figures[id] }) },
    sessions: new Sessions(clock),
    accountPolicy: DEFAULT_ACCOUNT,
    random: () => 0.5,
    maxCandidates: 16,
  };
}

export function askedWith(facts: Partial<RequestFacts> = {}): RequestFacts {
  return {
    model: 'a/m',
    fallbackModels: [],
    fallbackOnRefusal: false,
    provider: {},
    stream: false,
    choices: 1,
    media: { images: 0, documents: 0 },
    ...facts,
  };
}

export interface RouteOptions {
  promptBytes?: number;
  session?: SessionKey;
}

export function routeIn(world: RoutingParts, facts: Partial<RequestFacts>, options: RouteOptions = {}): Route {
  return route(
    {
      facts: askedWith(facts),
      promptBytes: options.promptBytes ?? 100,
      servedBy: () => true,
      session: () => options.session,
    },
    world,
  );
}

/** The providers in the order in which they are tried. */
export function providersIn(world: RoutingParts, facts: Partial<RequestFacts>, options?: RouteOptions): string[] {
  return routeIn(world, facts, options).candidates.map(({ endpoint }) => endpoint.provider.id);
}

export function refusalIn(world: RoutingParts, facts: Partial<RequestFacts>, options?: RouteOptions): GatewayError {
  try {
    routeIn(world, facts, options);
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
  throw new Error('it was routed');
}
