/** Spans, and how they are encoded. */

export type AttributeValue = string | number | boolean | readonly string[] | null | undefined;
/** Members without a value are left out. */
export type Attributes = Readonly<Record<string, AttributeValue>>;

/** The numbers of the protocol. */
export const SpanKind = { internal: 1, server: 2, client: 3 } as const;

/** A span without its attributes and its outcome. */
export interface Span {
  /** 32 and 16 hexadecimal digits. */
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | null;
  readonly name: string;
  readonly kind: (typeof SpanKind)[keyof typeof SpanKind];
  /** Wall time in ms; may have fractions. */
  readonly startedAt: number;
  readonly endedAt: number;
}

export const STATUS_ERROR = 2;

/** What all spans of a payload share. */
export interface Source {
  readonly resource: Attributes;
  /** Of the instrumentation scope. */
  readonly name: string;
  readonly version: string;
  readonly schemaUrl: string;
}

/**
 * Encodes spans at once, so that only bytes are kept and no object is built for attributes: encoding is most of the cost of
 * a span.
 */
export interface SpanWriter {
  /** Bytes of the spans so far. */
  readonly size: number;
  /** The attributes of the span follow, then its end. */
  begin(span: Span): void;
  /** Each name once in a span. */
  attribute(name: string, value: AttributeValue): void;
  attributes(all: Attributes): void;
  /** @param error null: the span did not fail */
  end(error: string | null): void;
  /** The spans since the last call: a piece of a payload. */
  take(): Buffer;
}

export interface TraceEncoding {
  readonly contentType: string;
  writer(): SpanWriter;
  /** A whole payload. */
  body(source: Source, pieces: readonly Buffer[]): Buffer;
}
