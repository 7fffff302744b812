/**
 * The Protocol Buffers encoding of OTLP, written directly into a buffer, because encoding is the only cost of each span. Field
 * numbers: `trace.proto`, `common.proto` and `resource.proto` of opentelemetry-proto.
 */
import { MessageWriter } from './message-writer.ts';
import type { Attributes, AttributeValue, Source, Span, SpanWriter, TraceEncoding } from './span.ts';
import { STATUS_ERROR } from './span.ts';

/** Of `ExportTraceServiceRequest`, `ResourceSpans` and `ScopeSpans`. */
const RESOURCE_SPANS = 1;
const RESOURCE = { resource: 1, scopeSpans: 2 };
const SCOPE = { scope: 1, spans: 2, schemaUrl: 3 };
const ATTRIBUTES_OF_RESOURCE = 1;
const SCOPE_NAME = { name: 1, version: 2 };
const SPAN = { traceId: 1, spanId: 2, parentSpanId: 4, name: 5, kind: 6, start: 7, end: 8, attributes: 9, status: 15 };
const STATUS = { message: 2, code: 3 };
const PAIR = { key: 1, value: 2 };
const VALUE = { string: 1, bool: 2, int: 3, double: 4, array: 5 };
const ARRAY_VALUES = 1;

/** Enough bytes for the usual resource and scope; the buffer grows if they take more. */
const ROOM_FOR_SOURCE = 4 * 1024;

/** Names of attributes are few, except for those of clients. */
const MOST_KEYS = 500;
const KEYS = new Map<string, Buffer>();

export const PROTOBUF_TRACES: TraceEncoding = {
  contentType: 'application/x-protobuf',
  writer: () => new ProtobufWriter(),
  body,
};

class ProtobufWriter implements SpanWriter {
  readonly #out = new MessageWriter();
  /** Where the span begins. */
  #opened = 0;

  get size(): number {
    return this.#out.size;
  }

  begin({ traceId, spanId, parentSpanId, name, kind, startedAt, endedAt }: Span): void {
    const out = this.#out;
    this.#opened = out.open(SCOPE.spans);
    out.digits(SPAN.traceId, traceId);
    out.digits(SPAN.spanId, spanId);
    if (parentSpanId !== null) out.digits(SPAN.parentSpanId, parentSpanId);
    out.text(SPAN.name, name);
    out.integer(SPAN.kind, kind);
    out.nanoseconds(SPAN.start, startedAt);
    out.nanoseconds(SPAN.end, endedAt);
  }

  attribute(name: string, value: AttributeValue): void {
    addAttribute(this.#out, SPAN.attributes, name, value);
  }

  attributes(all: Attributes): void {
    addAttributes(this.#out, SPAN.attributes, all);
  }

  end(error: string | null): void {
    const out = this.#out;
    if (error !== null) {
      const status = out.open(SPAN.status);
      out.text(STATUS.message, error);
      out.integer(STATUS.code, STATUS_ERROR);
      out.close(status);
    }
    out.close(this.#opened);
  }

  take(): Buffer {
    return this.#out.take();
  }
}

function body({ resource, name, version, schemaUrl }: Source, pieces: readonly Buffer[]): Buffer {
  if (pieces.length === 0) return Buffer.alloc(0);
  const size = pieces.reduce((sum, { length }) => sum + length, ROOM_FOR_SOURCE);
  const out = new MessageWriter(size);
  const resourceSpans = out.open(RESOURCE_SPANS);
  const about = out.open(RESOURCE.resource);
  addAttributes(out, ATTRIBUTES_OF_RESOURCE, resource);
  out.close(about);
  const scopeSpans = out.open(RESOURCE.scopeSpans);
  const scope = out.open(SCOPE.scope);
  out.text(SCOPE_NAME.name, name);
  out.text(SCOPE_NAME.version, version);
  out.close(scope);
  for (const piece of pieces) out.raw(piece);
  out.text(SCOPE.schemaUrl, schemaUrl);
  out.close(scopeSpans);
  out.close(resourceSpans);
  return out.take();
}

function addAttributes(out: MessageWriter, field: number, attributes: Attributes): void {
  for (const name in attributes) addAttribute(out, field, name, attributes[name]);
}

function addAttribute(out: MessageWriter, field: number, name: string, value: AttributeValue): void {
  if (value === null || value === undefined) return;
  const key = keyOf(name);
  if (typeof value === 'string' && key !== undefined && out.shortPair(field, key, PAIR.value, VALUE.string, value))
    return;
  const pair = out.open(field);
  if (key === undefined) out.text(PAIR.key, name);
  else out.raw(key);
  const opened = out.open(PAIR.value);
  addValue(out, value);
  out.close(opened);
  out.close(pair);
}

/** The encoded member of a name that was seen before; undefined for further names of clients. */
function keyOf(name: string): Buffer | undefined {
  const known = KEYS.get(name);
  if (known !== undefined || KEYS.size >= MOST_KEYS) return known;
  const out = new MessageWriter();
  out.text(PAIR.key, name);
  const key = out.take();
  KEYS.set(name, key);
  return key;
}

function addValue(out: MessageWriter, value: NonNullable<AttributeValue>): void {
  if (typeof value === 'string') out.text(VALUE.string, value);
  else if (typeof value === 'boolean') out.integer(VALUE.bool, value ? 1 : 0);
  else if (typeof value !== 'number') {
    const list = out.open(VALUE.array);
    for (const each of value) {
      const element = out.open(ARRAY_VALUES);
      out.text(VALUE.string, each);
      out.close(element);
    }
    out.close(list);
  } else if (Number.isSafeInteger(value)) out.integer(VALUE.int, value);
  else out.double(VALUE.double, value);
}
