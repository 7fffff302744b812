/**
 * The record of one generation: the ledger entry and the source of GET /generation. Times are milliseconds since 1970
 * UTC, durations milliseconds, money nano-dollars.
 *
 * Each member is one line of the tables below; its type, its columns and the reply of GET /generation follow from it.
 * To add a column: a migration that adds it nullable (journals of earlier versions do not have it), a line here, and
 * the value where the compiler asks for it (`row.ts`, `inference/accounting/record.ts`). Answers from the response cache
 * and rows of dead processes have its empty value unless their code sets another.
 */
import { type Static, Type } from 'typebox';
import { nullable } from '../http/contract.ts';
import * as kind from './column.ts';
import { column, type Member } from './column.ts';
import { USAGE_COLUMNS } from './usage-columns.ts';

export type ApiType =
  | 'completions'
  | 'embeddings'
  | 'rerank'
  | 'decisions'
  | 'video'
  | 'tts'
  | 'stt'
  | 'image'
  | 'moderation';

export type DataRegion = 'global' | 'europe' | 'us';

/** One upstream attempt with wire member names (`ProviderResponse` in `openapi.json`). Stored as it is. */
export interface ProviderResponse {
  endpoint_id?: string;
  /** Why it did not answer: the kind of its failure, or `given_up`. */
  ended?: string;
  id?: string;
  is_byok?: boolean;
  /** Milliseconds that it took. */
  latency?: number;
  model_permaslug?: string;
  provider_name?: string;
  routed_service_tier?: 'flex' | 'priority';
  /** Milliseconds after the request was accepted. Absent for the only attempt of a request. */
  started?: number;
  status: number | null;
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

/** An endpoint that was not tried, stored compactly: its id, provider and model, then the reasons. */
export type UnaskedEndpoint = readonly [endpointId: string, provider: string, model: string, ...reasons: string[]];

/** Counts that GET /generation shows in addition to tokens; absent means none. */
interface MediaCounts {
  promptMedia?: number;
  promptAudio?: number;
  completionMedia?: number;
  searchResults?: number;
  fetches?: number;
}

const STRING = Type.String();
const STRING_OR_NULL = nullable(Type.String());
const NUMBER_OR_NULL = nullable(Type.Number());
const COUNT_OR_NULL = nullable(Type.Integer({ minimum: 0 }));

const UNASKED = Type.Object({
  endpoint_id: STRING,
  provider_name: STRING,
  model: STRING,
  reasons: Type.Array(STRING),
});

function unaskedOnWire([endpointId, provider, model, ...reasons]: UnaskedEndpoint): Static<typeof UNASKED> {
  return { endpoint_id: endpointId, provider_name: provider, model, reasons };
}

/** Facts known when a request is accepted. */
const ACCEPTED = {
  /** `gen-...` */
  id: column('id', kind.text(), { id: STRING }),
  /** Time of acceptance; decides which budget windows the spend counts in. */
  createdAt: column('created_at', kind.time, { created_at: Type.String({ format: 'date-time' }) }),
  requestId: column('request_id', kind.optionalText, { request_id: STRING_OR_NULL }),
  keyId: column('key_id', kind.text()),
  workspaceId: column('workspace_id', kind.text(), { workspace_id: STRING_OR_NULL }),
  organizationId: column('organization_id', kind.text()),
  apiType: column('api_type', kind.text<ApiType>(), { api_type: STRING_OR_NULL }),
  streamed: column('streamed', kind.flag, { streamed: nullable(Type.Boolean()) }),
  dataRegion: column('data_region', kind.text<DataRegion>(), { data_region: STRING }),
  userAgent: column('user_agent', kind.optionalText, { user_agent: STRING_OR_NULL }),
  /** `HTTP-Referer`; '' when absent. */
  origin: column('origin', kind.text(), { origin: STRING }),
  /** `X-Svc-Title`. */
  title: column('title', kind.optionalText),
  sessionId: column('session_id', kind.optionalText, { session_id: STRING_OR_NULL }),
  externalUser: column('external_user', kind.optionalText, { external_user: STRING_OR_NULL }),
  presetId: column('preset_id', kind.optionalText, { preset_id: STRING_OR_NULL }),
  metadata: column('metadata', kind.optionalJson<Record<string, string>>(), {
    metadata: nullable(
      Type.Record(Type.String(), Type.String(), { description: "The pairs of the request's member `metadata`" }),
    ),
  }),
  /** Guardrail filters that matched in the request; absent if none. */
  guardrails: column('guardrails', kind.optionalList<GuardrailMark>(), {
    guardrails: Type.Array(Type.Object({}), { description: 'Guardrail filters that matched' }),
  }),
};

/** The outcome of a request. */
const OUTCOME = {
  /** Catalog id of the model that answered; the requested model if none did. */
  model: column('model', kind.text(), { model: STRING }),
  endpointId: column('endpoint_id', kind.optionalText),
  providerName: column('provider_name', kind.optionalText, { provider_name: STRING_OR_NULL }),
  upstreamId: column('upstream_id', kind.optionalText, { upstream_id: STRING_OR_NULL }),
  isByok: column('is_byok', kind.flag, { is_byok: Type.Boolean() }),
  /** HTTP status sent to the client; null if none was sent. */
  status: column('status', kind.optionalInteger),
  error: column('error', kind.optionalJson<{ type: string; message: string }>()),
  /** The client disconnected before the answer was complete. */
  cancelled: column('cancelled', kind.flag, { cancelled: nullable(Type.Boolean()) }),
  /** The upstream reported no usage: counts and cost are estimated from the bytes seen. */
  estimated: column('estimated', kind.flag),
  /** The process died after dispatch and before any answer: the cost is that of the estimated prompt. */
  unconfirmed: column('unconfirmed', kind.flag),
  finishReason: column('finish_reason', kind.optionalText, { finish_reason: STRING_OR_NULL }),
  nativeFinishReason: column('native_finish_reason', kind.optionalText, { native_finish_reason: STRING_OR_NULL }),
  /** null if nothing was dispatched or no tokens were billed. */
  usage: USAGE_COLUMNS,
  media: column('media', kind.json<MediaCounts>({})),
  /** Charged in credits. */
  costNano: column('cost_nano', kind.money, {
    total_cost: Type.Number(),
    usage: Type.Number({ description: 'USD' }),
  }),
  /** Paid to the provider with a BYOK credential; counts in budgets that include BYOK. */
  byokNano: column('byok_nano', kind.money),
  /** The upstream's charge, if reported or known. */
  upstreamCostNano: column('upstream_cost_nano', kind.optionalMoney, { upstream_inference_cost: NUMBER_OR_NULL }),
  /** Saved by prompt caching; negative if writing the cache cost more. */
  cacheDiscountNano: column('cache_discount_nano', kind.optionalMoney, { cache_discount: NUMBER_OR_NULL }),
  /** Time from dispatch to the first visible content. */
  latencyMs: column('latency_ms', kind.duration, { latency: NUMBER_OR_NULL }),
  generationMs: column('generation_ms', kind.duration, { generation_time: NUMBER_OR_NULL }),
  moderationMs: column('moderation_ms', kind.duration, { moderation_latency: NUMBER_OR_NULL }),
  providerResponses: column('provider_responses', kind.json<readonly ProviderResponse[]>([]), {
    provider_responses: nullable(
      Type.Array(Type.Object({ status: COUNT_OR_NULL }, { additionalProperties: true }), {
        description:
          'The attempts at upstreams. `started` is in ms after acceptance, and `ended` says why one did not answer; an only attempt that answered has neither',
      }),
    ),
  }),
  /** Endpoints of the requested models that were not tried; absent if there are none. */
  unaskedEndpoints: column('unasked_endpoints', kind.tuples(unaskedOnWire), {
    unasked_endpoints: Type.Array(UNASKED, {
      description: 'Endpoints of the requested models that were not tried, each with the reasons; at most 20',
    }),
  }),
  serviceTier: column('service_tier', kind.optionalText, { service_tier: STRING_OR_NULL }),
  router: column('router', kind.optionalText, { router: STRING_OR_NULL }),
  webSearchEngine: column('web_search_engine', kind.optionalText, { web_search_engine: STRING_OR_NULL }),
  responseCacheSourceId: column('response_cache_source_id', kind.optionalText, {
    response_cache_source_id: STRING_OR_NULL,
  }),
};

/** The members of a row, in the order of their columns. */
export const MEMBERS = { ...ACCEPTED, ...OUTCOME };

type Table = Readonly<Record<string, unknown>>;
type ValueOf<M> = M extends Member<infer T, infer _> ? T : never;
/** Members that can be undefined may be absent. */
type Values<T extends Table> = {
  [M in keyof T as undefined extends ValueOf<T[M]> ? never : M]: ValueOf<T[M]>;
} & { [M in keyof T as undefined extends ValueOf<T[M]> ? M : never]?: ValueOf<T[M]> };

/** Immutable. */
export interface Accepted extends Values<typeof ACCEPTED> {}
export interface Generation extends Values<typeof MEMBERS> {}

type JsonOf<M> = M extends Member<infer _, infer C> ? (columns: C) => void : never;
/** The JSON of a row by column. */
export type RowColumns =
  JsonOf<(typeof MEMBERS)[keyof typeof MEMBERS]> extends infer F
    ? (F extends unknown ? F : never) extends (columns: infer C) => void
      ? C
      : never
    : never;

const UNANSWERED = emptyValues(OUTCOME);
const NOTHING_KNOWN = emptyValues(ACCEPTED);

function emptyValues<T extends Readonly<Record<string, { empty: unknown }>>>(table: T): Values<T> {
  const values = Object.entries(table).filter(([, { empty }]) => empty !== undefined);
  return Object.fromEntries(values.map(([name, { empty }]) => [name, empty])) as Values<T>;
}

/** A row without an answer, which callers complete. */
export function unansweredRow(accepted: Accepted, model: string): Generation {
  return { ...UNANSWERED, ...accepted, model };
}

/** The part of a row that was known when its request was accepted. */
export function acceptedPartOf(row: Generation): Accepted {
  const members = Object.keys(ACCEPTED) as (keyof Accepted)[];
  return Object.fromEntries(members.map((member) => [member, row[member]])) as unknown as Accepted;
}

/** Completes what an earlier version has written. */
export function acceptedFrom(stored: Partial<Accepted>): Accepted {
  return { ...NOTHING_KNOWN, ...stored };
}
