/** Records as spans of OTLP, one for each generation. */
import {
  type Attributes,
  GEN_AI,
  JSON_TRACES,
  SCHEMA_URL,
  SERVICE_NAME,
  type Source,
  type Span,
  SpanKind,
  type TraceEncoding,
} from '../../otlp/index.ts';
import type { GenerationRecord } from '../record.ts';
import { inputMessages, outputMessages } from './messages.ts';

/** Members of a request's body that have an attribute. */
const PARAMETERS: Readonly<Record<string, string>> = {
  max_tokens: 'gen_ai.request.max_tokens',
  max_completion_tokens: 'gen_ai.request.max_tokens',
  max_output_tokens: 'gen_ai.request.max_tokens',
  temperature: 'gen_ai.request.temperature',
  top_p: 'gen_ai.request.top_p',
  top_k: 'gen_ai.request.top_k',
  seed: 'gen_ai.request.seed',
  frequency_penalty: 'gen_ai.request.frequency_penalty',
  presence_penalty: 'gen_ai.request.presence_penalty',
};

export interface Payload {
  /** Default JSON. */
  encoding?: TraceEncoding;
  /** Of the resource, in addition to the service. */
  resource?: Attributes;
  /** Of each span, in addition to the common ones. */
  span?(record: GenerationRecord): Attributes;
}

/** @param records none: an empty payload, which tests a connection */
export function otlpBody(
  records: readonly GenerationRecord[],
  version: string,
  { encoding = JSON_TRACES, ...more }: Payload = {},
): Buffer {
  const writer = encoding.writer();
  for (const record of records) writer.add(spanOf(record, more.span?.(record)));
  return encoding.body(sourceOf(version, more), records.length === 0 ? [] : [writer.take()]);
}

function sourceOf(version: string, { resource }: Payload): Source {
  return {
    resource: { 'service.name': SERVICE_NAME, 'service.version': version, ...resource },
    ...{ name: SERVICE_NAME, version, schemaUrl: SCHEMA_URL },
  };
}

function spanOf(record: GenerationRecord, more: Attributes = {}): Span {
  const { traceId, spanId, parentSpanId, startedAt, endedAt, error } = record;
  return {
    ...{ traceId, spanId, parentSpanId, startedAt, endedAt },
    name: record.spanName ?? `${record.operation} ${record.requestedModel}`,
    kind: SpanKind.client,
    attributes: { ...attributesOf(record), ...more },
    error: error && (error.message ?? error.type),
  };
}

/** The attributes of a record that every destination gets. */
function attributesOf(record: GenerationRecord): Attributes {
  const { usage, input, output, metadata } = record;
  const parameters = Object.entries(record.parameters).map(([name, value]) => [PARAMETERS[name], value] as const);
  const custom = Object.entries(metadata).map(
    ([name, value]) => [`trace.metadata.${name}`, customValue(value)] as const,
  );
  return {
    [GEN_AI.operation]: record.operation,
    [GEN_AI.provider]: record.provider,
    [GEN_AI.system]: record.provider,
    [GEN_AI.requestModel]: record.requestedModel,
    [GEN_AI.stream]: record.streamed,
    ...Object.fromEntries(parameters),
    [GEN_AI.responseId]: record.id,
    [GEN_AI.responseModel]: record.model,
    [GEN_AI.finishReasons]: record.finishReason === null ? undefined : [record.finishReason],
    [GEN_AI.timeToFirstChunk]: record.latencyMs === null ? undefined : record.latencyMs / 1_000,
    [GEN_AI.inputTokens]: usage?.prompt,
    [GEN_AI.outputTokens]: usage?.completion,
    [GEN_AI.cacheReadTokens]: usage?.cacheRead,
    [GEN_AI.cacheCreationTokens]: usage?.cacheWrite,
    [GEN_AI.reasoningTokens]: usage?.reasoning,
    [GEN_AI.cost]: record.cost,
    [GEN_AI.conversation]: record.sessionId,
    [GEN_AI.inputMessages]: input === null ? undefined : JSON.stringify(inputMessages(input)),
    [GEN_AI.outputMessages]: output === null ? undefined : JSON.stringify(outputMessages(output, record.finishReason)),
    'error.type': record.error?.type,
    'http.response.status_code': record.status,
    'session.id': record.sessionId,
    'user.id': record.userId,
    'trace.name': record.traceName,
    'gatehouse.api_key.name': record.keyName,
    'gatehouse.cancelled': record.cancelled ? true : undefined,
    ...detailsOf(record),
    ...Object.fromEntries(custom),
  };
}

function detailsOf({ costDetails, identity, context }: GenerationRecord): Attributes {
  return {
    'gatehouse.cost.upstream': costDetails?.upstream,
    'gatehouse.cost.cache_discount': costDetails?.cacheDiscount,
    'gatehouse.is_byok': costDetails?.isByok,
    'gatehouse.organization.id': identity?.organizationId,
    'gatehouse.workspace.id': identity?.workspaceId,
    'gatehouse.api_key.hash': identity?.keyHash,
    'gatehouse.member.id': identity?.memberId,
    'gatehouse.request.id': context?.requestId,
    'gatehouse.request.region': context?.region,
    'gatehouse.request.referer': context?.referer,
    'gatehouse.request.title': context?.title,
    'user_agent.original': context?.userAgent,
  };
}

function customValue(value: unknown): Attributes[string] {
  if (typeof value === 'string' || typeof value === 'boolean') return value;
  if (typeof value === 'number') return value;
  return JSON.stringify(value);
}
