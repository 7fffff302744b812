/**
 * Records as OTLP/HTTP JSON (`ExportTraceServiceRequest`): a span for each generation. Built here rather than by the
 * OpenTelemetry SDK, because a record is already complete when it arrives: nothing has to be measured or kept open.
 */
import type { GenerationRecord } from '../record.ts';
import { inputMessages, outputMessages } from './messages.ts';
import { GEN_AI, PARAMETERS, SCHEMA_URL, SERVICE_NAME } from './names.ts';

/** JSON of the protocol's `AnyValue`. 64-bit integers are text. */
type AnyValue =
  | { stringValue: string }
  | { boolValue: boolean }
  | { intValue: string }
  | { doubleValue: number }
  | { arrayValue: { values: AnyValue[] } };

type AttributeValue = string | number | boolean | readonly string[] | null | undefined;
/** Members without a value are left out. */
export type Attributes = Readonly<Record<string, AttributeValue>>;

const CLIENT_KIND = 3;
const STATUS_ERROR = 2;

export interface Payload {
  /** Of the resource, in addition to the service. */
  resource?: Attributes;
  /** Of each span, in addition to the common ones. */
  span?(record: GenerationRecord): Attributes;
}

/** @param records none: an empty payload, which tests a connection */
export function otlpBody(records: readonly GenerationRecord[], version: string, more: Payload = {}): string {
  if (records.length === 0) return '{"resourceSpans":[]}';
  return JSON.stringify({
    resourceSpans: [
      {
        resource: {
          attributes: listOf({ 'service.name': SERVICE_NAME, 'service.version': version, ...more.resource }),
        },
        scopeSpans: [
          {
            scope: { name: SERVICE_NAME, version },
            schemaUrl: SCHEMA_URL,
            spans: records.map((record) => spanOf(record, more.span?.(record))),
          },
        ],
      },
    ],
  });
}

function spanOf(record: GenerationRecord, more: Attributes = {}) {
  const { error } = record;
  return {
    traceId: record.traceId,
    spanId: record.spanId,
    ...(record.parentSpanId !== null && { parentSpanId: record.parentSpanId }),
    name: record.spanName ?? `${record.operation} ${record.requestedModel}`,
    kind: CLIENT_KIND,
    startTimeUnixNano: nanoseconds(record.startedAt),
    endTimeUnixNano: nanoseconds(record.endedAt),
    attributes: listOf({ ...attributesOf(record), ...more }),
    status: error === null ? {} : { code: STATUS_ERROR, message: error.message ?? error.type },
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

function customValue(value: unknown): AttributeValue {
  if (typeof value === 'string' || typeof value === 'boolean') return value;
  if (typeof value === 'number') return value;
  return JSON.stringify(value);
}

function listOf(attributes: Attributes): { key: string; value: AnyValue }[] {
  return Object.entries(attributes).flatMap(([key, value]) =>
    value === null || value === undefined ? [] : [{ key, value: anyValue(value) }],
  );
}

function anyValue(value: Exclude<AttributeValue, null | undefined>): AnyValue {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'boolean') return { boolValue: value };
  if (typeof value === 'number')
    return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value };
  return { arrayValue: { values: value.map((each) => ({ stringValue: each })) } };
}

function nanoseconds(ms: number): string {
  return `${Math.round(ms)}000000`;
}
