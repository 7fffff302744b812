/** Records as spans of OTLP, one for each generation. */
import {
  type Attributes,
  type AttributeValue,
  GEN_AI,
  JSON_TRACES,
  SCHEMA_URL,
  SERVICE_NAME,
  type Source,
  SpanKind,
  type SpanWriter,
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
  const out = more.longestValue === undefined ? writer : shortening(writer, more.longestValue);
  for (const record of records) addSpan(out, record, more.span?.(record));
  return encoding.body(sourceOf(version, more), records.length === 0 ? [] : [writer.take()]);
}

/** @param longest UTF-16 units of a text */
function shortening(writer: SpanWriter, longest: number): SpanWriter {
  const short = (value: AttributeValue) => (typeof value === 'string' ? value.slice(0, longest) : value);
  return {
    get size() {
      return writer.size;
    },
    begin: (span) => writer.begin(span),
    attribute: (name, value) => writer.attribute(name, short(value)),
    attributes(all) {
      for (const name in all) writer.attribute(name, short(all[name]));
    },
    end: (error) => writer.end(error?.slice(0, longest) ?? null),
    take: () => writer.take(),
  };
}

function sourceOf(version: string, { resource }: Payload): Source {
  return {
    resource: { 'service.name': SERVICE_NAME, 'service.version': version, ...resource },
    ...{ name: SERVICE_NAME, version, schemaUrl: SCHEMA_URL },
  };
}

function addSpan(out: SpanWriter, record: GenerationRecord, ofKind: Attributes | undefined): void {
  const { traceId, spanId, parentSpanId, startedAt, endedAt, error } = record;
  const name = record.spanName ?? `${record.operation} ${record.requestedModel}`;
  out.begin({ traceId, spanId, parentSpanId, name, kind: SpanKind.client, startedAt, endedAt });
  addUsual(out, record);
  addUsage(out, record);
  addContents(out, record);
  addParameters(out, record);
  addDetails(out, record);
  for (const name in record.metadata) out.attribute(`trace.metadata.${name}`, customValue(record.metadata[name]));
  if (ofKind !== undefined) out.attributes(ofKind);
  out.end(error && (error.message ?? error.type));
}

function addUsual(out: SpanWriter, record: GenerationRecord): void {
  const { finishReason, latencyMs } = record;
  out.attribute(GEN_AI.operation, record.operation);
  out.attribute(GEN_AI.provider, record.provider);
  out.attribute(GEN_AI.system, record.provider);
  out.attribute(GEN_AI.requestModel, record.requestedModel);
  out.attribute(GEN_AI.stream, record.streamed);
  out.attribute(GEN_AI.responseId, record.id);
  out.attribute(GEN_AI.responseModel, record.model);
  if (finishReason !== null) out.attribute(GEN_AI.finishReasons, [finishReason]);
  if (latencyMs !== null) out.attribute(GEN_AI.timeToFirstChunk, latencyMs / 1_000);
  out.attribute(GEN_AI.cost, record.cost);
  out.attribute(GEN_AI.conversation, record.sessionId);
  out.attribute('error.type', record.error?.type);
  out.attribute('http.response.status_code', record.status);
  out.attribute('session.id', record.sessionId);
  out.attribute('user.id', record.userId);
  out.attribute('trace.name', record.traceName);
  out.attribute('gatehouse.api_key.name', record.keyName);
  if (record.cancelled) out.attribute('gatehouse.cancelled', true);
}

function addUsage(out: SpanWriter, { usage }: GenerationRecord): void {
  if (usage === null) return;
  out.attribute(GEN_AI.inputTokens, usage.prompt);
  out.attribute(GEN_AI.outputTokens, usage.completion);
  out.attribute(GEN_AI.cacheReadTokens, usage.cacheRead);
  out.attribute(GEN_AI.cacheCreationTokens, usage.cacheWrite);
  out.attribute(GEN_AI.reasoningTokens, usage.reasoning);
}

function addContents(out: SpanWriter, { input, output, finishReason }: GenerationRecord): void {
  if (input !== null) out.attribute(GEN_AI.inputMessages, JSON.stringify(inputMessages(input)));
  if (output !== null) out.attribute(GEN_AI.outputMessages, JSON.stringify(outputMessages(output, finishReason)));
}

/** Several members may have one attribute; the last one counts. */
function addParameters(out: SpanWriter, { parameters }: GenerationRecord): void {
  const found: Record<string, number> = {};
  for (const name in parameters) found[PARAMETERS[name]!] = parameters[name]!;
  out.attributes(found);
}

function addDetails(out: SpanWriter, { costDetails, identity, context }: GenerationRecord): void {
  if (costDetails !== null) {
    out.attribute('gatehouse.cost.upstream', costDetails.upstream);
    out.attribute('gatehouse.cost.cache_discount', costDetails.cacheDiscount);
    out.attribute('gatehouse.is_byok', costDetails.isByok);
  }
  if (identity !== null) {
    out.attribute('gatehouse.organization.id', identity.organizationId);
    out.attribute('gatehouse.workspace.id', identity.workspaceId);
    out.attribute('gatehouse.api_key.hash', identity.keyHash);
    out.attribute('gatehouse.member.id', identity.memberId);
  }
  if (context !== null) {
    out.attribute('gatehouse.request.id', context.requestId);
    out.attribute('gatehouse.request.region', context.region);
    out.attribute('gatehouse.request.referer', context.referer);
    out.attribute('gatehouse.request.title', context.title);
    out.attribute('user_agent.original', context.userAgent);
  }
}

function customValue(value: unknown): AttributeValue {
  if (typeof value === 'string' || typeof value === 'boolean') return value;
  if (typeof value === 'number') return value;
  return JSON.stringify(value);
}
