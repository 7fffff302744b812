/** The JSON encoding of OTLP: ids in hexadecimal digits, 64-bit integers as text. */
import type { Attributes, Source, Span, SpanWriter, TraceEncoding } from './span.ts';
import { STATUS_ERROR } from './span.ts';

type AnyValue =
  | { stringValue: string }
  | { boolValue: boolean }
  | { intValue: string }
  | { doubleValue: number }
  | { arrayValue: { values: AnyValue[] } };

export const JSON_TRACES: TraceEncoding = {
  contentType: 'application/json',
  writer: () => new JsonWriter(),
  body: (source, pieces) => Buffer.from(payload(source, pieces.join())),
};

class JsonWriter implements SpanWriter {
  #text = '';

  get size(): number {
    return this.#text.length;
  }

  add(span: Span): void {
    this.#text += this.#text === '' ? spanJson(span) : `,${spanJson(span)}`;
  }

  take(): Buffer {
    const piece = Buffer.from(this.#text);
    this.#text = '';
    return piece;
  }
}

/** @param spans the elements of the list */
function payload({ resource, name, version, schemaUrl }: Source, spans: string): string {
  if (spans === '') return '{"resourceSpans":[]}';
  const attributes = JSON.stringify(listOf(resource));
  const scope = JSON.stringify({ name, version });
  const scopeSpans = `[{"scope":${scope},"schemaUrl":${JSON.stringify(schemaUrl)},"spans":[${spans}]}]`;
  return `{"resourceSpans":[{"resource":{"attributes":${attributes}},"scopeSpans":${scopeSpans}}]}`;
}

function spanJson({ traceId, spanId, parentSpanId, name, kind, startedAt, endedAt, attributes, error }: Span): string {
  return JSON.stringify({
    ...{ traceId, spanId },
    ...(parentSpanId !== null && { parentSpanId }),
    ...{ name, kind },
    startTimeUnixNano: nanoseconds(startedAt),
    endTimeUnixNano: nanoseconds(endedAt),
    attributes: listOf(attributes),
    status: error === null ? {} : { code: STATUS_ERROR, message: error },
  });
}

function listOf(attributes: Attributes): { key: string; value: AnyValue }[] {
  return Object.entries(attributes).flatMap(([key, value]) =>
    value === null || value === undefined ? [] : [{ key, value: anyValue(value) }],
  );
}

function anyValue(value: NonNullable<Attributes[string]>): AnyValue {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'boolean') return { boolValue: value };
  if (typeof value === 'number')
    return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value };
  return { arrayValue: { values: value.map((each) => ({ stringValue: each })) } };
}

/** Digits, because the number is beyond 2^53. */
function nanoseconds(ms: number): string {
  const whole = Math.floor(ms);
  return `${whole}${String(Math.floor((ms - whole) * 1e6)).padStart(6, '0')}`;
}
