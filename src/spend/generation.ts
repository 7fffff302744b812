/**
 * The record of one generation. It is the ledger entry, and everything that GET /generation shows
 * (wire/generations.md). Times are milliseconds since 1970 UTC, durations milliseconds, money nano-dollars.
 */

import type { Nano } from '../base/money.ts';
import { usdFromNano } from '../base/money.ts';
import type { Usage } from '../formats/conversation/conversation.ts';

export type ApiType = 'completions' | 'embeddings' | 'rerank' | 'decisions' | 'video' | 'tts' | 'stt' | 'image';

export type DataRegion = 'global' | 'europe' | 'us';

/** One upstream attempt, in the words of the wire (ProviderResponse). Stored as it is. */
export interface ProviderResponse {
  endpoint_id?: string;
  id?: string;
  is_byok?: boolean;
  latency?: number;
  model_permaslug?: string;
  provider_name?: string;
  routed_service_tier?: 'flex' | 'priority';
  status: number | null;
}

/** What is known of a request when it is accepted, and never changes. */
export interface Accepted {
  /** `gen-...` */
  id: string;
  /** Acceptance; decides the budget windows that the spend belongs to. */
  createdAt: number;
  requestId: string | null;
  keyId: string;
  workspaceId: string;
  organizationId: string;
  apiType: ApiType;
  streamed: boolean;
  dataRegion: DataRegion;
  userAgent: string | null;
  /** `HTTP-Referer`; '' when absent. */
  origin: string;
  /** `X-Svc-Title`. */
  title: string | null;
  sessionId: string | null;
  externalUser: string | null;
  metadata: Record<string, string> | null;
  /** What filters of guardrails found in the request; absent: nothing. */
  guardrails?: readonly GuardrailMark[] | undefined;
}

/** One filter that found something, never what. In the words of the wire; stored as it is. */
export interface GuardrailMark {
  guardrail_id: string;
  guardrail_scope: string;
  /** Slug of a built-in filter, or the pattern. */
  filter: string;
  action: string;
  matches: number;
}

/** Counts that GET /generation shows beside the tokens; absent means none. */
export interface MediaCounts {
  promptMedia?: number;
  promptAudio?: number;
  completionMedia?: number;
  searchResults?: number;
  fetches?: number;
}

export interface Generation extends Accepted {
  /** Catalog id of the model that served, or the asked one when none did. */
  model: string;
  endpointId: string | null;
  providerName: string | null;
  upstreamId: string | null;
  isByok: boolean;
  /** HTTP status that the client got; null when it got none. */
  status: number | null;
  error: { type: string; message: string } | null;
  /** The client left before the answer was complete. */
  cancelled: boolean;
  /** No usage arrived: counts and cost come from the bytes seen. */
  estimated: boolean;
  /** The process died after dispatch and before any answer was seen: the cost is the estimated prompt's. */
  unconfirmed: boolean;
  finishReason: string | null;
  nativeFinishReason: string | null;
  /** null when nothing was dispatched or no token was billed. */
  usage: Usage | null;
  media: MediaCounts;
  /** Charged in credits. */
  costNano: Nano;
  /** Paid to the upstream through a key of the customer's own; counts in budgets that include it. */
  byokNano: Nano;
  /** What the upstream bills, when it says so or it is known. */
  upstreamCostNano: Nano | null;
  /** Saved by prompt caching; negative when writing cost more. */
  cacheDiscountNano: bigint | null;
  /** Dispatch to first visible content. */
  latencyMs: number | null;
  generationMs: number | null;
  moderationMs: number | null;
  providerResponses: ProviderResponse[];
  serviceTier: string | null;
  router: string | null;
  presetId: string | null;
  webSearchEngine: string | null;
  responseCacheSourceId: string | null;
}

/** GenerationResponseData of wire/generations.md. */
export function encodeGeneration(row: Generation): Record<string, unknown> {
  const usage = row.usage;
  const prompt = usage === null ? null : usage.input + usage.cacheRead + usage.cacheWrite5m + usage.cacheWrite1h;
  const completion = usage === null ? null : usage.output;
  return {
    id: row.id,
    api_type: row.apiType,
    app_id: null,
    cache_discount: row.cacheDiscountNano === null ? null : usdFromNano(row.cacheDiscountNano),
    cancelled: row.cancelled,
    created_at: new Date(row.createdAt).toISOString(),
    data_region: row.dataRegion,
    external_user: row.externalUser,
    finish_reason: row.finishReason,
    generation_time: row.generationMs,
    // Client libraries want the referer under this name as well.
    http_referer: row.origin === '' ? null : row.origin,
    guardrails: row.guardrails ?? [],
    is_byok: row.isByok,
    latency: row.latencyMs,
    metadata: row.metadata,
    model: row.model,
    moderation_latency: row.moderationMs,
    native_finish_reason: row.nativeFinishReason,
    native_tokens_cached: usage === null ? null : usage.cacheRead,
    native_tokens_completion: completion,
    native_tokens_completion_images: usage?.outputImage ?? null,
    native_tokens_prompt: prompt,
    native_tokens_reasoning: usage === null ? null : usage.reasoning,
    num_fetches: row.media.fetches ?? usage?.webFetches ?? null,
    num_input_audio_prompt: row.media.promptAudio ?? null,
    num_media_completion: row.media.completionMedia ?? null,
    num_media_prompt: row.media.promptMedia ?? null,
    num_search_results: row.media.searchResults ?? null,
    origin: row.origin,
    preset_id: row.presetId,
    provider_name: row.providerName,
    provider_responses: row.providerResponses,
    request_id: row.requestId,
    response_cache_source_id: row.responseCacheSourceId,
    router: row.router,
    service_tier: row.serviceTier,
    session_id: row.sessionId,
    streamed: row.streamed,
    tokens_completion: completion,
    tokens_prompt: prompt,
    total_cost: usdFromNano(row.costNano),
    upstream_id: row.upstreamId,
    upstream_inference_cost: row.upstreamCostNano === null ? null : usdFromNano(row.upstreamCostNano),
    usage: usdFromNano(row.costNano),
    user_agent: row.userAgent,
    web_search_engine: row.webSearchEngine,
    workspace_id: row.workspaceId,
  };
}
