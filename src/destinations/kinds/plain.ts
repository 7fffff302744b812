/** A record as a plain JSON object, for stores that have no format of their own. */
import type { GenerationRecord } from '../record.ts';

/** Values are text, numbers, booleans or null; nested values are JSON texts. */
type PlainRecord = Readonly<Record<string, string | number | boolean | null>>;

export function plainRecord(record: GenerationRecord): PlainRecord {
  const { usage, costDetails, identity, context, error } = record;
  return {
    generation_id: record.id,
    trace_id: record.traceId,
    span_id: record.spanId,
    parent_span_id: record.parentSpanId,
    trace_name: record.traceName,
    span_name: record.spanName,
    session_id: record.sessionId,
    user_id: record.userId,
    api_key_name: record.keyName,
    started_at: new Date(record.startedAt).toISOString(),
    ended_at: new Date(record.endedAt).toISOString(),
    operation: record.operation,
    requested_model: record.requestedModel,
    model: record.model,
    provider: record.provider,
    streamed: record.streamed,
    status: record.status,
    error_type: error?.type ?? null,
    error_message: error?.message ?? null,
    cancelled: record.cancelled,
    finish_reason: record.finishReason,
    latency_ms: record.latencyMs,
    prompt_tokens: usage?.prompt ?? null,
    completion_tokens: usage?.completion ?? null,
    cache_read_tokens: usage?.cacheRead ?? null,
    cache_write_tokens: usage?.cacheWrite ?? null,
    reasoning_tokens: usage?.reasoning ?? null,
    total_cost: record.cost,
    cost_details: jsonOrNull(costDetails),
    identity: jsonOrNull(identity),
    request_context: jsonOrNull(context),
    parameters: JSON.stringify(record.parameters),
    metadata: JSON.stringify(record.metadata),
    input: record.input,
    output: record.output,
  };
}

function jsonOrNull(value: object | null): string | null {
  return value && JSON.stringify(value);
}
