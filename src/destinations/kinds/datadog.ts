/** Datadog LLM Observability (docs.datadoghq.com/llm_observability/instrumentation/api): its own JSON of spans. */
import type { Outgoing } from '../../egress/index.ts';
import { inputMessages, outputMessages, plainMessages } from '../otlp/messages.ts';
import type { GenerationRecord } from '../record.ts';
import {
  baseUrl,
  type DestinationKind,
  type FullConfig,
  JSON_BODY,
  secret,
  text,
  USUAL_BATCH_UNITS,
  under,
} from './kind.ts';

const ROOT = 'undefined';
const NS_PER_MS = 1_000_000;

export const datadog: DestinationKind = {
  type: 'datadog',
  fields: { apiKey: secret(), mlApp: text(), url: baseUrl({ default: 'https://api.datadoghq.com' }) },
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
      kind: kindOf(record),
      ...(input !== null && { input: contentOf(record, inputMessages(input)) }),
      ...(output !== null && { output: contentOf(record, outputMessages(output, record.finishReason)) }),
      ...(error && { error: { type: error.type, message: error.message ?? error.type } }),
      metadata: plainValues({
        ...record.metadata,
        ...record.parameters,
        ...details,
        generation_id: record.id,
        model_name: record.model,
        model_provider: record.provider,
        api_key_name: record.keyName,
        finish_reason: record.finishReason,
        total_cost: record.cost,
      }),
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

function kindOf({ operation }: GenerationRecord): string {
  return operation === 'embeddings' ? 'embedding' : 'llm';
}

/** Only spans of the kind `llm` have messages. */
function contentOf(record: GenerationRecord, messages: Parameters<typeof plainMessages>[0]): object {
  const plain = plainMessages(messages);
  return kindOf(record) === 'llm' ? { messages: plain } : { value: plain.map(({ content }) => content).join('\n') };
}

/** Values of metadata must be numbers, booleans or texts. */
function plainValues(metadata: Readonly<Record<string, unknown>>): Record<string, string | number | boolean> {
  const plain: Record<string, string | number | boolean> = {};
  for (const [name, value] of Object.entries(metadata)) {
    if (value === null || value === undefined) continue;
    plain[name] = isPlain(value) ? value : JSON.stringify(value);
  }
  return plain;
}

function isPlain(value: unknown): value is string | number | boolean {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
}

function testSpan(now: number): object {
  const id = String(now);
  const meta = { kind: 'task' };
  return {
    ...{ parent_id: ROOT, trace_id: id, span_id: id, name: 'connection test', meta },
    ...{ start_ns: now * NS_PER_MS, duration: 0 },
  };
}
