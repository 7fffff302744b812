/** PostHog: `$ai_generation` and `$ai_embedding` events (posthog.com/docs/llm-analytics/manual-capture) in batches (posthog.com/docs/api/capture). */
import type { Outgoing } from '../../egress/index.ts';
import { inputMessages, outputMessages, plainMessages } from '../otlp/messages.ts';
import type { GenerationRecord } from '../record.ts';
import { baseUrl, type DestinationKind, type FullConfig, JSON_BODY, secret, USUAL_BATCH_UNITS, under } from './kind.ts';

export const posthog: DestinationKind = {
  type: 'posthog',
  fields: { apiKey: secret(), endpoint: baseUrl({ default: 'https://us.i.posthog.com' }) },
  durable: false,
  batchUnits: USUAL_BATCH_UNITS,
  probe: (config, { now }) => {
    const properties = { distinct_id: 'gatehouse', $process_person_profile: false };
    return request(config, [{ event: 'connection test', properties, timestamp: new Date(now).toISOString() }]);
  },
  requests: (config, records) => [request(config, records.map(eventOf))],
};

function request({ members, headers }: FullConfig, batch: readonly object[]): Outgoing {
  return {
    url: under(members['endpoint']!, '/batch/'),
    method: 'POST',
    headers: { ...JSON_BODY, ...headers },
    body: JSON.stringify({ api_key: members['apiKey'], batch }),
  };
}

function eventOf(record: GenerationRecord): object {
  const { usage, input, output, error } = record;
  const isKnown = record.userId !== null;
  const { temperature, max_completion_tokens: ofChat, max_output_tokens: ofResponses } = record.parameters;
  return {
    event: record.operation === 'embeddings' ? '$ai_embedding' : '$ai_generation',
    timestamp: new Date(record.endedAt).toISOString(),
    properties: {
      ...record.metadata,
      ...record.costDetails,
      ...record.identity,
      ...record.context,
      distinct_id: record.userId ?? record.sessionId ?? record.traceId,
      ...(!isKnown && { $process_person_profile: false }),
      $ai_trace_id: record.traceId,
      ...(record.sessionId !== null && { $ai_session_id: record.sessionId }),
      $ai_span_id: record.spanId,
      ...(record.spanName !== null && { $ai_span_name: record.spanName }),
      ...(record.parentSpanId !== null && { $ai_parent_id: record.parentSpanId }),
      $ai_model: record.model,
      $ai_provider: record.provider,
      ...(input !== null && { $ai_input: plainMessages(inputMessages(input)) }),
      ...(output !== null && { $ai_output_choices: plainMessages(outputMessages(output, record.finishReason)) }),
      $ai_input_tokens: usage?.prompt,
      $ai_output_tokens: usage?.completion,
      $ai_cache_read_input_tokens: usage?.cacheRead,
      $ai_cache_creation_input_tokens: usage?.cacheWrite,
      $ai_temperature: temperature,
      $ai_max_tokens: record.parameters['max_tokens'] ?? ofChat ?? ofResponses,
      $ai_latency: (record.endedAt - record.startedAt) / 1_000,
      $ai_stream: record.streamed,
      ...(record.latencyMs !== null && { $ai_time_to_first_token: record.latencyMs / 1_000 }),
      $ai_total_cost_usd: record.cost,
      $ai_http_status: record.status,
      $ai_is_error: error !== null,
      ...(error && { $ai_error: error.message ?? error.type }),
      generation_id: record.id,
      api_key_name: record.keyName,
      finish_reason: record.finishReason,
    },
  };
}
