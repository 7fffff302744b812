/**
 * Spans as OTLP (`ExportTraceServiceRequest` of opentelemetry-proto 1.x), in both encodings of OTLP/HTTP: JSON and Protocol
 * Buffers. Written here rather than with the OpenTelemetry SDK, because spans are complete when they arrive: nothing has to
 * be measured or kept open. No I/O. Not here: which spans there are (`destinations/`, `tracing/`).
 */
export { JSON_TRACES } from './json.ts';
export { GEN_AI, OPERATION_NAMES, SCHEMA_URL, SERVICE_NAME } from './names.ts';
export { PROTOBUF_TRACES } from './protobuf.ts';
export {
  type Attributes,
  type AttributeValue,
  type Source,
  type Span,
  SpanKind,
  type SpanWriter,
  type TraceEncoding,
} from './span.ts';
