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
  /** UTF-16 units; longer texts are cut. Default: no limit. */
  longestValue?: number;
}

/** @param records none: an empty payload, which tests a connection */
export function otlpBody(
  records: readonly GenerationRecord[],
  version: string,
  { encoding = JSON_TRACES, ...more }: Payload = {},
): Buffer {
  const writer = encoding.writer();
  for (const record of records) writer.add(cut(spanOf(record, more.span?.(record)), more.longestValue));
  return encoding.body(sourceOf(version, more), records.length === 0 ? [] : [writer.take()]);
}

function sourceOf(version: string, { resource }: Payload): Source {
  return {
    resource: { 'service.name': SERVICE_NAME, 'service.version': version, ...resource },
    ...{ name: SERVICE_NAME, version, schemaUrl: SCHEMA_URL },
  };
}

function spanOf(record: GenerationRecord, ofKind: Attributes | undefined): Span {
  const { error } = record;
  return {
    traceId: record.traceId,
    spanId: record.spanId,
    parentSpanId: record.parentSpanId,
    startedAt: record.startedAt,
    endedAt: record.endedAt,
    name: record.spanName ?? `${record.operation} ${record.requestedModel}`,
    kind: SpanKind.client,
    attributes: attributesOf(record),
    more: moreOf(record, ofKind),
    error: error && (error.message ?? error.type),
  };
}

function cut(span: Span, longest: number | undefined): Span {
  if (longest === undefined) return span;
  const short = (attributes: Attributes): Attributes =>
    Object.fromEntries(
      Object.entries(attributes).map(([name, value]) => [
        name,
        typeof value === 'string' ? value.slice(0, longest) : value,
      ]),
    );
  const { attributes, more, error } = span;
  return {
    ...span,
    attributes: short(attributes),
    more: more?.map(short) ?? [],
    error: error?.slice(0, longest) ?? null,
  };
}

/** The attributes that nearly every record has. */
function attributesOf(record: GenerationRecord): Attributes {
  const { usage, input, output, finishReason } = record;
  return {
    [GEN_AI.operation]: record.operation,
    [GEN_AI.provider]: record.provider,
    [GEN_AI.system]: record.provider,
    [GEN_AI.requestModel]: record.requestedModel,
    [GEN_AI.stream]: record.streamed,
    [GEN_AI.responseId]: record.id,
    [GEN_AI.responseModel]: record.model,
    [GEN_AI.finishReasons]: finishReason === null ? undefined : [finishReason],
    [GEN_AI.timeToFirstChunk]: record.latencyMs === null ? undefined : record.latencyMs / 1_000,
    [GEN_AI.inputTokens]: usage?.prompt,
    [GEN_AI.outputTokens]: usage?.completion,
    [GEN_AI.cacheReadTokens]: usage?.cacheRead,
    [GEN_AI.cacheCreationTokens]: usage?.cacheWrite,
    [GEN_AI.reasoningTokens]: usage?.reasoning,
    [GEN_AI.cost]: record.cost,
    [GEN_AI.conversation]: record.sessionId,
    [GEN_AI.inputMessages]: input === null ? undefined : JSON.stringify(inputMessages(input)),
    [GEN_AI.outputMessages]: output === null ? undefined : JSON.stringify(outputMessages(output, finishReason)),
    'error.type': record.error?.type,
    'http.response.status_code': record.status,
    'session.id': record.sessionId,
    'user.id': record.userId,
    'trace.name': record.traceName,
    'gatehouse.api_key.name': record.keyName,
    'gatehouse.cancelled': record.cancelled ? true : undefined,
  };
}

function moreOf(record: GenerationRecord, ofKind: Attributes | undefined): Attributes[] {
  const { costDetails, identity, context } = record;
  const more: Attributes[] = [];
  const parameters: Record<string, Attributes[string]> = {};
  for (const name in record.parameters) parameters[PARAMETERS[name]!] = record.parameters[name];
  more.push(parameters);
  if (costDetails !== null || identity !== null || context !== null) more.push(detailsOf(record));
  const custom: Record<string, Attributes[string]> = {};
  for (const name in record.metadata) custom[`trace.metadata.${name}`] = customValue(record.metadata[name]);
  more.push(custom);
  if (ofKind !== undefined) more.push(ofKind);
  return more;
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
