/** A span, before it is encoded. */

type AttributeValue = string | number | boolean | readonly string[] | null | undefined;
/** Members without a value are left out. */
export type Attributes = Readonly<Record<string, AttributeValue>>;

/** The numbers of the protocol. */
export const SpanKind = { internal: 1, server: 2, client: 3 } as const;

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
  readonly attributes: Attributes;
  /** Attributes that few spans have, so that nothing has to be copied into one object. Without names of `attributes`. */
  readonly more?: readonly Attributes[];
  /** Null: the span did not fail. */
  readonly error: string | null;
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

/** Encodes spans as they come, so that nothing else of them has to be kept. */
export interface SpanWriter {
  /** Bytes so far. */
  readonly size: number;
  add(span: Span): void;
  /** The spans since the last call: a piece of a payload. */
  take(): Buffer;
}

export interface TraceEncoding {
  readonly contentType: string;
  writer(): SpanWriter;
  /** A whole payload. */
  body(source: Source, pieces: readonly Buffer[]): Buffer;
}
