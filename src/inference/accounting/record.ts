/** Builds the row of one request from the facts at acceptance and the outcome. Pure. */
import type { GatewayError } from '../../base/errors.ts';
import type { CachedAnswer } from '../../cache/index.ts';
import {
  type Accepted,
  type ApiType,
  type Generation,
  type ProviderResponse,
  unansweredRow,
} from '../../spend/index.ts';
import { marksOf } from '../admission/guardrails.ts';
import type { Admission, RequestContext } from '../context.ts';
import type { Candidate, Route } from '../routing/index.ts';
import type { Attempt } from '../task.ts';
import type { Metered } from './meter.ts';
import { unaskedOf } from './unasked.ts';

export function acceptedOf({ request, hits }: Admission, apiType: ApiType): Accepted {
  const { about, facts, caller } = request;
  return {
    id: request.id,
    createdAt: request.startedAt,
    requestId: about.requestId,
    keyId: caller.keyId,
    workspaceId: caller.workspaceId,
    organizationId: caller.organizationId,
    apiType,
    streamed: facts.stream,
    dataRegion: about.region,
    userAgent: about.userAgent,
    origin: about.origin,
    title: about.title,
    sessionId: facts.sessionId ?? about.sessionId,
    externalUser: facts.user ?? caller.externalUser,
    metadata: facts.metadata ?? null,
    guardrails: hits && marksOf(hits),
    presetId: request.presetId ?? null,
  };
}

export interface Ending {
  /** The HTTP status that the client got; null if no status was sent. */
  status: number | null;
  error: GatewayError | null;
  cancelled: boolean;
  /** Null when no attempt cost anything. */
  metered: Metered | null;
  candidate: Candidate | undefined;
  attempt: Attempt | undefined;
  responses: ProviderResponse[];
  latencyMs: number | null;
  generationMs: number;
}

export function rowOf(context: RequestContext, apiType: ApiType, route: Route, ending: Ending): Generation {
  const { attempt, candidate, error, metered } = ending;
  const accepted = acceptedOf(context, apiType);
  // Listed member by member: starting an object of this size as a copy of another costs several times as much.
  return {
    id: accepted.id,
    createdAt: accepted.createdAt,
    requestId: accepted.requestId,
    keyId: accepted.keyId,
    workspaceId: accepted.workspaceId,
    organizationId: accepted.organizationId,
    apiType: accepted.apiType,
    streamed: accepted.streamed,
    dataRegion: accepted.dataRegion,
    userAgent: accepted.userAgent,
    origin: accepted.origin,
    title: accepted.title,
    sessionId: accepted.sessionId,
    externalUser: accepted.externalUser,
    metadata: accepted.metadata,
    guardrails: accepted.guardrails,
    model: candidate?.endpoint.modelId ?? route.requested,
    endpointId: candidate?.endpoint.id ?? null,
    providerName: candidate?.endpoint.provider.name ?? null,
    upstreamId: attempt?.upstreamId ?? null,
    isByok: candidate?.byok !== undefined,
    status: ending.status,
    error: error === null ? null : { type: error.type, message: error.message },
    cancelled: ending.cancelled,
    estimated: metered?.estimated ?? false,
    unconfirmed: false,
    finishReason: error !== null ? 'error' : ending.cancelled ? null : (attempt?.finish?.unified ?? null),
    nativeFinishReason: attempt?.finish?.native ?? null,
    usage: metered?.usage ?? null,
    media: {},
    costNano: metered?.costNano ?? 0n,
    byokNano: metered?.byokNano ?? 0n,
    upstreamCostNano: candidate?.byok === undefined || !metered ? null : metered.byokNano,
    cacheDiscountNano: metered?.cacheDiscountNano ?? null,
    latencyMs: ending.latencyMs === null ? null : Math.round(ending.latencyMs),
    generationMs: Math.round(ending.generationMs),
    moderationMs: context.moderationMs === undefined ? null : Math.round(context.moderationMs),
    providerResponses: ending.responses,
    unaskedEndpoints: unaskedOf(context, route, ending),
    serviceTier: attempt?.serviceTier ?? null,
    router: route.router?.slug ?? null,
    presetId: accepted.presetId,
    webSearchEngine: null,
    responseCacheSourceId: null,
  };
}

/** A cached answer costs nothing. */
const NO_USAGE = { input: 0, cacheRead: 0, cacheWrite5m: 0, cacheWrite1h: 0, output: 0, reasoning: 0 };

/** The row of a request that the response cache answered. */
export function cachedRowOf(
  context: Admission,
  apiType: ApiType,
  answer: CachedAnswer,
  { error, cancelled, generationMs }: Pick<Ending, 'error' | 'cancelled' | 'generationMs'>,
): Generation {
  const ended = error === null && !cancelled;
  return {
    ...unansweredRow(acceptedOf(context, apiType), answer.model),
    endpointId: answer.endpointId,
    providerName: answer.providerName,
    status: 200,
    error: error === null ? null : { type: error.type, message: error.message },
    cancelled,
    finishReason: ended ? answer.finishReason : error === null ? null : 'error',
    nativeFinishReason: ended ? answer.nativeFinishReason : null,
    usage: NO_USAGE,
    latencyMs: Math.round(generationMs),
    generationMs: Math.round(generationMs),
    responseCacheSourceId: answer.sourceId,
  };
}
