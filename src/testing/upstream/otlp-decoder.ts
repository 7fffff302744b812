/**
 * Reads payloads of OTLP in both encodings: Protocol Buffers with protobufjs by the published definition of the messages. It
 * shares no code with the gateway.
 */
import assert from 'node:assert/strict';
import protobuf from 'protobufjs';

/** The messages of opentelemetry-proto 1.x, without what the gateway never sends. */
const DEFINITION = `
  syntax = "proto3";
  message ExportTraceServiceRequest { repeated ResourceSpans resource_spans = 1; }
  message ResourceSpans { Resource resource = 1; repeated ScopeSpans scope_spans = 2; string schema_url = 3; }
  message Resource { repeated KeyValue attributes = 1; uint32 dropped_attributes_count = 2; }
  message ScopeSpans { InstrumentationScope scope = 1; repeated Span spans = 2; string schema_url = 3; }
  message InstrumentationScope { string name = 1; string version = 2; repeated KeyValue attributes = 3; }
  message Span {
    bytes trace_id = 1; bytes span_id = 2; string trace_state = 3; bytes parent_span_id = 4; string name = 5;
    int32 kind = 6; fixed64 start_time_unix_nano = 7; fixed64 end_time_unix_nano = 8;
    repeated KeyValue attributes = 9; Status status = 15; fixed32 flags = 16;
  }
  message Status { reserved 1; string message = 2; int32 code = 3; }
  message KeyValue { string key = 1; AnyValue value = 2; }
  message AnyValue { oneof value {
    string string_value = 1; bool bool_value = 2; int64 int_value = 3; double double_value = 4; ArrayValue array_value = 5;
  } }
  message ArrayValue { repeated AnyValue values = 1; }
`;
const PAYLOAD = protobuf.parse(DEFINITION).root.lookupType('ExportTraceServiceRequest');

export interface CollectedSpan {
  traceId: string;
  spanId: string;
  parentSpanId: string | undefined;
  name: string;
  kind: number;
  startNano: bigint;
  endNano: bigint;
  attributes: Record<string, unknown>;
  status: { code: number; message: string };
}

export interface CollectedTraces {
  resource: Record<string, unknown>;
  scope: { name: string; version: string };
  schemaUrl: string;
  spans: CollectedSpan[];
}

/** The members of a message as its JSON encoding names them. */
// biome-ignore lint/suspicious/noExplicitAny: the JSON of a test.
type Json = any;

/** @param body of a request with this content type */
export function decodeTraces(body: Buffer, contentType: string | undefined): CollectedTraces[] {
  if (contentType === 'application/json') return shown(JSON.parse(body.toString()));
  assert.equal(contentType, 'application/x-protobuf');
  const message = PAYLOAD.decode(body);
  return shown(PAYLOAD.toObject(message, { longs: String, bytes: Buffer, defaults: true }));
}

function shown({ resourceSpans = [] }: Json): CollectedTraces[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }: Json) =>
    scopeSpans.map(({ scope, schemaUrl, spans }: Json) => ({
      scope: { name: scope.name, version: scope.version },
      schemaUrl,
      resource: attributesOf(resource.attributes),
      spans: spans.map(spanOf),
    })),
  );
}

function spanOf(span: Json): CollectedSpan {
  const { name, kind, attributes } = span;
  const status = span.status ?? {};
  return {
    ...{ name, kind },
    traceId: digits(span.traceId)!,
    spanId: digits(span.spanId)!,
    parentSpanId: digits(span.parentSpanId),
    startNano: BigInt(span.startTimeUnixNano),
    endNano: BigInt(span.endTimeUnixNano),
    attributes: attributesOf(attributes),
    status: { code: status.code ?? 0, message: status.message ?? '' },
  };
}

function digits(id: string | Buffer | undefined): string | undefined {
  const given = typeof id === 'object' ? Buffer.from(id).toString('hex') : id;
  return given === '' ? undefined : given;
}

function attributesOf(list: Json[] = []): Record<string, unknown> {
  const names = list.map(({ key }) => key);
  assert.equal(new Set(names).size, names.length, 'an attribute is given twice');
  return Object.fromEntries(list.map(({ key, value }) => [key, plainValue(value)]));
}

function plainValue(value: Json): unknown {
  const [[kind, given]] = Object.entries(value) as [[string, Json]];
  if (kind === 'arrayValue') return (given.values ?? []).map(plainValue);
  return kind === 'intValue' ? Number(given) : given;
}
