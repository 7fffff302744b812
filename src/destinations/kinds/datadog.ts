/** Datadog LLM Observability (docs.datadoghq.com/llm_observability/instrumentation/api): its own JSON of spans. */
import type { Outgoing } from '../../egress/index.ts';
import { inputMessages, outputMessages, plainMessages } from '../otlp/messages.ts';
import type { GenerationRecord } from '../record.ts';
import {
  type DestinationKind,
  type FullConfig,
  JSON_BODY,
  secret,
  text,
  USUAL_BATCH_UNITS,
  under,
  url,
} from './kind.ts';

const ROOT = 'undefined';
const NS_PER_MS = 1_000_000;

export const datadog: DestinationKind = {
  type: 'datadog',
  fields: { apiKey: secret(), mlApp: text(), url: url({ default: 'https://api.datadoghq.com' }) },
  durable: false,
  batchUnits: USUAL_BATCH_UNITS,
  probe: (config, { now }) => request(config, [testSpan(now)]),
  requests: (config, records) => [request(config, records.map(spanOf))],
};

function request({ members, headers }: FullConfig, spans: readonly object[]): Outgoing {
  const { url: base, apiKey, mlApp } = members;
  return {
    url: under(base!, '/api/intake/llm-obs/v1/trace/spans'),
    method: 'POST',
    headers: { ...JSON_BODY, ...headers, 'dd-api-key': apiKey! },
    body: JSON.stringify({ data: { type: 'span', attributes: { ml_app: mlApp, tags: ['service:gatehouse'], spans } } }),
  };
}

function spanOf(record: GenerationRecord): object {
  const { usage, input, output, error, sessionId, userId } = record;
  const details = { ...record.costDetails, ...record.identity, ...record.context };
  return {
    parent_id: record.parentSpanId ?? ROOT,
    trace_id: record.traceId,
    span_id: record.spanId,
    name: record.spanName ?? record.operation,
    ...(sessionId !== null && { session_id: sessionId }),
    ...(userId !== null && { tags: [`user_id:${userId}`] }),
    status: error === null ? 'ok' : 'error',
    meta: {
      kind: record.operation === 'embeddings' ? 'embedding' : 'llm',
      ...(input !== null && { input: { messages: plainMessages(inputMessages(input)) } }),
      ...(output !== null && { output: { messages: plainMessages(outputMessages(output, record.finishReason)) } }),
      ...(error && { error: { type: error.type, message: error.message ?? error.type } }),
      metadata: {
        ...record.metadata,
        ...record.parameters,
        ...details,
        generation_id: record.id,
        model_name: record.model,
        model_provider: record.provider,
        api_key_name: record.keyName,
        finish_reason: record.finishReason,
        total_cost: record.cost,
      },
    },
    metrics: {
      ...(usage && {
        input_tokens: usage.prompt,
        output_tokens: usage.completion,
        total_tokens: usage.prompt + usage.completion,
      }),
      ...(record.latencyMs !== null && { time_to_first_token: record.latencyMs / 1_000 }),
    },
    start_ns: record.startedAt * NS_PER_MS,
    duration: (record.endedAt - record.startedAt) * NS_PER_MS,
  };
}

function testSpan(now: number): object {
  const id = String(now);
  const meta = { kind: 'task' };
  return {
    ...{ parent_id: ROOT, trace_id: id, span_id: id, name: 'connection test', meta },
    ...{ start_ns: now * NS_PER_MS, duration: 0 },
  };
}
