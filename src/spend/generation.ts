/**
 * The record of one generation: the ledger entry and the source of GET /generation. Times are milliseconds since 1970
 * UTC, durations milliseconds, money nano-dollars.
 */

import type { Nano } from '../base/money.ts';
import { usdFromNano } from '../base/money.ts';
import type { Usage } from '../formats/conversation/conversation.ts';

export type ApiType = 'completions' | 'embeddings' | 'rerank' | 'decisions' | 'video' | 'tts' | 'stt' | 'image';

export type DataRegion = 'global' | 'europe' | 'us';

/** One upstream attempt with wire member names (`ProviderResponse` in `openapi.json`). Stored as it is. */
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

/** Facts known when a request is accepted; immutable. */
export interface Accepted {
  /** `gen-...` */
  id: string;
  /** Time of acceptance; decides which budget windows the spend counts in. */
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
  /** Guardrail filters that matched in the request; absent if none. */
  guardrails?: readonly GuardrailMark[] | undefined;
}

/** A filter that matched, without the matched text. Wire member names; stored as it is. */
export interface GuardrailMark {
  guardrail_id: string;
  guardrail_scope: string;
  /** Slug of a built-in filter, or the pattern. */
  filter: string;
  action: string;
  matches: number;
}

/** Counts that GET /generation shows in addition to tokens; absent means none. */
export interface MediaCounts {
  promptMedia?: number;
  promptAudio?: number;
  completionMedia?: number;
  searchResults?: number;
  fetches?: number;
}

export interface Generation extends Accepted {
  /** Catalog id of the model that answered; the requested model if none did. */
  model: string;
  endpointId: string | null;
  providerName: string | null;
  upstreamId: string | null;
  isByok: boolean;
  /** HTTP status sent to the client; null if none was sent. */
  status: number | null;
  error: { type: string; message: string } | null;
  /** The client disconnected before the answer was complete. */
  cancelled: boolean;
  /** The upstream reported no usage: counts and cost are estimated from the bytes seen. */
  estimated: boolean;
  /** The process died after dispatch and before any answer: the cost is that of the estimated prompt. */
  unconfirmed: boolean;
  finishReason: string | null;
  nativeFinishReason: string | null;
  /** null if nothing was dispatched or no tokens were billed. */
  usage: Usage | null;
  media: MediaCounts;
  /** Charged in credits. */
  costNano: Nano;
  /** Paid to the provider with a BYOK credential; counts in budgets that include BYOK. */
  byokNano: Nano;
  /** The upstream's charge, if reported or known. */
  upstreamCostNano: Nano | null;
  /** Saved by prompt caching; negative if writing the cache cost more. */
  cacheDiscountNano: bigint | null;
  /** Time from dispatch to the first visible content. */
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

/** `GenerationResponseData` in `openapi.json`. */
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
    // Client libraries read the referer under this name too.
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
