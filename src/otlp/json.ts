/** The JSON encoding of OTLP: ids in hexadecimal digits, 64-bit integers as text. */
import type { Attributes, Source, Span, SpanWriter, TraceEncoding } from './span.ts';
import { STATUS_ERROR } from './span.ts';

/** Keys are few, except for those of clients. */
const MOST_KEYS = 500;
const OPENED = new Map<string, string>();

export const JSON_TRACES: TraceEncoding = {
  contentType: 'application/json',
  writer: () => new JsonWriter(),
  body,
};

/** Writes text and builds no objects, since the encoding is most of what a record costs. */
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

const COMMA = Buffer.from(',');
const END = Buffer.from(']}]}]}');

function body({ resource, name, version, schemaUrl }: Source, pieces: readonly Buffer[]): Buffer {
  if (pieces.length === 0) return Buffer.from('{"resourceSpans":[]}');
  const scope = `{"scope":${JSON.stringify({ name, version })},"schemaUrl":${JSON.stringify(schemaUrl)},"spans":[`;
  const begin = `{"resourceSpans":[{"resource":{"attributes":[${listed(resource)}]},"scopeSpans":[${scope}`;
  const spans = pieces.flatMap((piece, at) => (at === 0 ? [piece] : [COMMA, piece]));
  return Buffer.concat([Buffer.from(begin), ...spans, END]);
}

/** Ids are hexadecimal digits, which need no escapes. */
function spanJson(span: Span): string {
  const { traceId, spanId, parentSpanId, error } = span;
  const parent = parentSpanId === null ? '' : `,"parentSpanId":"${parentSpanId}"`;
  const times = `"startTimeUnixNano":"${nanoseconds(span.startedAt)}","endTimeUnixNano":"${nanoseconds(span.endedAt)}"`;
  const status = error === null ? '{}' : JSON.stringify({ code: STATUS_ERROR, message: error });
  let attributes = listed(span.attributes);
  for (const more of span.more ?? []) {
    const others = listed(more);
    attributes += attributes === '' || others === '' ? others : `,${others}`;
  }
  return (
    `{"traceId":"${traceId}","spanId":"${spanId}"${parent},"name":${JSON.stringify(span.name)},"kind":${span.kind},` +
    `${times},"attributes":[${attributes}],"status":${status}}`
  );
}

/** The elements of a list of attributes. */
function listed(attributes: Attributes): string {
  let text = '';
  for (const key in attributes) {
    const value = attributes[key];
    if (value === null || value === undefined) continue;
    text += (text === '' ? '' : ',') + opened(key) + valueJson(value);
  }
  return text;
}

/** A pair up to its value. */
function opened(key: string): string {
  const known = OPENED.get(key);
  if (known !== undefined) return known;
  const text = `{"key":${JSON.stringify(key)},"value":`;
  if (OPENED.size < MOST_KEYS) OPENED.set(key, text);
  return text;
}

/** A value, and the end of its pair. */
function valueJson(value: NonNullable<Attributes[string]>): string {
  if (typeof value === 'string') return `{"stringValue":${JSON.stringify(value)}}}`;
  if (typeof value === 'boolean') return value ? '{"boolValue":true}}' : '{"boolValue":false}}';
  if (typeof value === 'number') {
    return Number.isSafeInteger(value) ? `{"intValue":"${value}"}}` : `{"doubleValue":${JSON.stringify(value)}}}`;
  }
  return `{"arrayValue":${JSON.stringify({ values: value.map((each) => ({ stringValue: each })) })}}}`;
}

/** Digits, because the number is beyond 2^53. */
function nanoseconds(ms: number): string {
  const whole = Math.floor(ms);
  return `${whole}${String(Math.floor((ms - whole) * 1e6)).padStart(6, '0')}`;
}
