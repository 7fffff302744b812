/** The JSON encoding of OTLP: ids in hexadecimal digits, 64-bit integers as text. */
import type { Attributes, AttributeValue, Source, Span, SpanWriter, TraceEncoding } from './span.ts';
import { STATUS_ERROR } from './span.ts';

/** Names of attributes are few, except for those of clients. */
const MOST_NAMES = 500;
const OPENED = new Map<string, string>();

export const JSON_TRACES: TraceEncoding = {
  contentType: 'application/json',
  writer: () => new JsonWriter(),
  body,
};

const FIRST_BYTES = 16 * 1024;
/** UTF-8 of a UTF-16 unit. */
const MOST_BYTES_OF_A_UNIT = 3;

/** Gathers the text of one span and writes it as bytes when it is complete. */
class JsonWriter implements SpanWriter {
  #bytes = Buffer.alloc(0);
  #at = 0;
  #span = '';
  #hasAttributes = false;

  get size(): number {
    return this.#at;
  }

  /** Ids are hexadecimal digits, which need no escapes. */
  begin({ traceId, spanId, parentSpanId, name, kind, startedAt, endedAt }: Span): void {
    const parent = parentSpanId === null ? '' : `,"parentSpanId":"${parentSpanId}"`;
    this.#span =
      `${this.#at === 0 ? '' : ','}{"traceId":"${traceId}","spanId":"${spanId}"${parent},"name":${JSON.stringify(name)},` +
      `"kind":${kind},"startTimeUnixNano":"${nanoseconds(startedAt)}","endTimeUnixNano":"${nanoseconds(endedAt)}",` +
      '"attributes":[';
    this.#hasAttributes = false;
  }

  attribute(name: string, value: AttributeValue): void {
    if (value === null || value === undefined) return;
    const pair = opened(name);
    this.#span += (this.#hasAttributes ? pair : pair.slice(1)) + valueJson(value);
    this.#hasAttributes = true;
  }

  attributes(all: Attributes): void {
    for (const name in all) this.attribute(name, all[name]);
  }

  end(error: string | null): void {
    const status = error === null ? '{}' : JSON.stringify({ code: STATUS_ERROR, message: error });
    const text = `${this.#span}],"status":${status}}`;
    this.#room(text.length * MOST_BYTES_OF_A_UNIT);
    this.#at += this.#bytes.write(text, this.#at);
  }

  take(): Buffer {
    const piece = this.#bytes.subarray(0, this.#at);
    this.#bytes = Buffer.alloc(0);
    this.#at = 0;
    return piece;
  }

  #room(bytes: number): void {
    if (this.#at + bytes <= this.#bytes.length) return;
    const grown = Buffer.allocUnsafe(Math.max(FIRST_BYTES, this.#bytes.length * 2, this.#at + bytes));
    grown.set(this.#bytes.subarray(0, this.#at));
    this.#bytes = grown;
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

/** The elements of a list of attributes. */
function listed(attributes: Attributes): string {
  let text = '';
  for (const name in attributes) {
    const value = attributes[name];
    if (value !== null && value !== undefined) text += opened(name) + valueJson(value);
  }
  return text.slice(1);
}

/** A comma, and a pair up to its value. */
function opened(name: string): string {
  const known = OPENED.get(name);
  if (known !== undefined) return known;
  const text = `,{"key":${JSON.stringify(name)},"value":`;
  if (OPENED.size < MOST_NAMES) OPENED.set(name, text);
  return text;
}

/** A value, and the end of its pair. */
function valueJson(value: NonNullable<AttributeValue>): string {
  if (typeof value === 'string') return `{"stringValue":${JSON.stringify(value)}}}`;
  if (typeof value === 'boolean') return value ? '{"boolValue":true}}' : '{"boolValue":false}}';
  if (typeof value === 'number') {
    return Number.isSafeInteger(value) ? `{"intValue":"${value}"}}` : `{"doubleValue":${JSON.stringify(value)}}}`;
  }
  return `{"arrayValue":{"values":[${value.map((each) => `{"stringValue":${JSON.stringify(each)}}`).join(',')}]}}}`;
}

/** Digits, because the number is beyond 2^53. */
function nanoseconds(ms: number): string {
  const whole = Math.floor(ms);
  if (whole === ms) return `${whole}000000`;
  return `${whole}${String(Math.floor((ms - whole) * 1e6)).padStart(6, '0')}`;
}
