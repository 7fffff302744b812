/**
 * A row as text: a JSON object whose keys are the columns of the table `generations`, so the same text is journaled,
 * held in memory, and sent to PostgreSQL.
 */
import { isoTime } from '../base/timestamp.ts';
import { encodeMoney, type Member, type SqlType, type Stored } from './column.ts';
import { type Generation, MEMBERS, type RowColumns } from './generation.ts';
import { encodeCount, encodeDetails } from './usage-columns.ts';

/** A row from a journal or from the database. */
export type StoredRow = Stored<RowColumns>;

const MEMBERS_BY_NAME: readonly [string, Member<unknown, StoredRow>][] = Object.entries(MEMBERS);

/** The columns that a row is stored in, with their types. */
export const COLUMNS = MEMBERS_BY_NAME.flatMap(
  ([, { columns }]) => Object.entries(columns) as [keyof RowColumns, SqlType][],
);

/** JSON text of the row. PostgreSQL must accept its content, because one bad row would block its whole batch. */
export function encodeRow(row: Generation): string {
  const text = JSON.stringify(rowColumns(row));
  return text.includes('\\u') ? text.replace(ESCAPE, storable) : text;
}

/** Every escape of a JSON text; the group captures NUL and lone surrogates, which PostgreSQL refuses. */
const ESCAPE = /\\(?:u(0000|d[89a-f][0-9a-f]{2})|.)/g;

function storable(sequence: string, unstorable: string | undefined): string {
  return unstorable === undefined ? sequence : '\ufffd';
}

/**
 * Encodes every member as its `encode` does; written out, because every request runs it. Omits null members, a third of
 * the text; the database reads an absent column as null.
 */
function rowColumns(row: Generation): RowColumns {
  const usage = row.usage;
  return {
    id: row.id,
    created_at: isoTime(row.createdAt),
    request_id: row.requestId ?? undefined,
    key_id: row.keyId,
    workspace_id: row.workspaceId,
    organization_id: row.organizationId,
    api_type: row.apiType,
    streamed: row.streamed,
    data_region: row.dataRegion,
    user_agent: row.userAgent ?? undefined,
    origin: row.origin,
    title: row.title ?? undefined,
    session_id: row.sessionId ?? undefined,
    external_user: row.externalUser ?? undefined,
    metadata: row.metadata ?? undefined,
    guardrails: row.guardrails,
    model: row.model,
    endpoint_id: row.endpointId ?? undefined,
    provider_name: row.providerName ?? undefined,
    upstream_id: row.upstreamId ?? undefined,
    is_byok: row.isByok,
    status: row.status ?? undefined,
    error: row.error ?? undefined,
    cancelled: row.cancelled,
    estimated: row.estimated,
    unconfirmed: row.unconfirmed,
    finish_reason: row.finishReason ?? undefined,
    native_finish_reason: row.nativeFinishReason ?? undefined,
    input_tokens: usage === null ? undefined : encodeCount(usage.input),
    cache_read_tokens: usage === null ? undefined : encodeCount(usage.cacheRead),
    cache_write_5m_tokens: usage === null ? undefined : encodeCount(usage.cacheWrite5m),
    cache_write_1h_tokens: usage === null ? undefined : encodeCount(usage.cacheWrite1h),
    output_tokens: usage === null ? undefined : encodeCount(usage.output),
    reasoning_tokens: usage === null ? undefined : encodeCount(usage.reasoning),
    usage_details: usage === null ? undefined : encodeDetails(usage),
    media: row.media,
    cost_nano: encodeMoney(row.costNano),
    byok_nano: encodeMoney(row.byokNano),
    upstream_cost_nano: row.upstreamCostNano === null ? undefined : encodeMoney(row.upstreamCostNano),
    cache_discount_nano: row.cacheDiscountNano === null ? undefined : encodeMoney(row.cacheDiscountNano),
    latency_ms: row.latencyMs ?? undefined,
    generation_ms: row.generationMs ?? undefined,
    moderation_ms: row.moderationMs ?? undefined,
    provider_responses: row.providerResponses,
    unasked_endpoints: row.unaskedEndpoints,
    service_tier: row.serviceTier ?? undefined,
    router: row.router ?? undefined,
    preset_id: row.presetId ?? undefined,
    web_search_engine: row.webSearchEngine ?? undefined,
    response_cache_source_id: row.responseCacheSourceId ?? undefined,
  };
}

/** Decodes the JSON of a row, or the columns from the database. */
export function decodeRow(stored: StoredRow): Generation {
  const row: Record<string, unknown> = {};
  for (const [name, member] of MEMBERS_BY_NAME) {
    const value = member.decode(stored);
    if (value !== undefined) row[name] = value;
  }
  return row as unknown as Generation;
}
