/**
 * Which endpoints may serve a request, in the order in which they are tried (wire/chat.md, "provider"). Pure, but for
 * the health that it reads.
 */
import { GatewayError } from '../base/errors.ts';
import type { Catalog, Endpoint, Model } from '../catalog/index.ts';
import type { Asked, ProviderPreferences } from '../formats/conversation/format.ts';
import type { Health } from './health.ts';
import type { Task } from './task.ts';

export interface Candidate {
  endpoint: Endpoint;
  /** Which of the requested models it serves: 0 is the first. */
  rank: number;
}

export interface Route {
  candidates: Candidate[];
  /** The model's name as the client wrote it. */
  requested: string;
  strategy: 'direct' | 'alias' | 'fallback';
}

/**
 * @param task says which endpoints have what is asked for; absent: all
 * @throws GatewayError 400 for an unknown model and one of another kind, 404 when the preferences leave none
 */
export function route(
  asked: Asked,
  catalog: Catalog,
  health: Health,
  maxCandidates: number,
  task?: Pick<Task, 'servedBy'>,
): Route {
  if (asked.model === undefined && asked.fallbackModels.length === 0) {
    throw new GatewayError('invalid_request', 'model is required: no default model is configured', { path: 'model' });
  }
  const names = asked.model === undefined ? asked.fallbackModels : [asked.model, ...asked.fallbackModels];
  const candidates: Candidate[] = [];
  let alias = false;
  let served = false;
  names.forEach((name, rank) => {
    const model = catalog.find(name);
    if (model === undefined) throw unknownModel(name, names);
    if (model.id !== name) alias = true;
    const endpoints = task === undefined ? model.endpoints : fitting(model, task);
    served ||= endpoints.length > 0;
    for (const endpoint of preferred(endpoints, asked.provider, health)) candidates.push({ endpoint, rank });
  });
  if (candidates.length === 0) throw served ? nothingLeft(names, asked.provider) : wrongOperation(names);
  return {
    candidates: candidates.slice(0, maxCandidates),
    requested: names[0] as string,
    strategy: names.length > 1 ? 'fallback' : alias ? 'alias' : 'direct',
  };
}

/** The endpoints of one model that have what is asked for; its own list when all do. */
function fitting({ endpoints }: Model, task: Pick<Task, 'servedBy'>): readonly Endpoint[] {
  return endpoints.every((endpoint) => task.servedBy(endpoint))
    ? endpoints
    : endpoints.filter((endpoint) => task.servedBy(endpoint));
}

/** The endpoints of one model that the preferences allow: ordered ones first, resting ones last. */
function preferred(all: readonly Endpoint[], preferences: ProviderPreferences, health: Health): readonly Endpoint[] {
  const { order, only, ignore } = preferences;
  if (!order?.length && !only?.length && !ignore?.length && all.length === 1) return all;
  let endpoints = all.filter(
    (endpoint) => (!only?.length || matches(only, endpoint)) && !(ignore?.length && matches(ignore, endpoint)),
  );
  if (order?.length) {
    const place = (endpoint: Endpoint) => {
      const at = order.findIndex((slug) => isSlugOf(slug, endpoint));
      return at < 0 ? order.length : at;
    };
    endpoints = endpoints.toSorted((a, b) => place(a) - place(b));
  }
  // The first choice stands even while it rests: the caller wants this one or none.
  if (preferences.allow_fallbacks === false) return endpoints.slice(0, 1);
  return endpoints.toSorted((a, b) => Number(health.resting(a.id)) - Number(health.resting(b.id)));
}

function matches(slugs: readonly string[], endpoint: Endpoint): boolean {
  return slugs.some((slug) => isSlugOf(slug, endpoint));
}

/** A slug is a provider's id, its display name, or an id with a variant behind a slash (`acme/us`), in any case. */
function isSlugOf(slug: string, { provider, region, quantization }: Endpoint): boolean {
  const wanted = slug.toLowerCase();
  if (wanted === provider.id || wanted === provider.name.toLowerCase()) return true;
  if (!wanted.startsWith(`${provider.id}/`)) return false;
  const variant = wanted.slice(provider.id.length + 1);
  return variant === region?.toLowerCase() || variant === quantization?.toLowerCase();
}

function unknownModel(name: string, requested: readonly string[]): GatewayError {
  return new GatewayError('invalid_request', `${JSON.stringify(name.slice(0, 200))} is not a known model`, {
    path: 'model',
    availability: { code: 'model_not_found', retryable: false, requested_models: requested },
  });
}

function wrongOperation(requested: readonly string[]): GatewayError {
  const name = JSON.stringify(requested[0]?.slice(0, 200));
  return new GatewayError('invalid_request', `${name} has no endpoint that serves this operation`, {
    path: 'model',
    availability: { code: 'wrong_endpoint', retryable: false, requested_models: requested },
  });
}

function nothingLeft(requested: readonly string[], preferences: ProviderPreferences): GatewayError {
  const field = preferences.only?.length ? 'provider.only' : 'provider.ignore';
  return new GatewayError('not_found', `no allowed providers: ${field} leaves none that serves the requested model`, {
    path: field,
    availability: {
      code: 'constraint_filtered',
      retryable: false,
      requested_models: requested,
      excluded_by: ['allowed_providers'],
      constraint: { field, detail: 'no endpoint of the requested models belongs to an allowed provider' },
    },
  });
}
