/**
 * One HTTP operation as data: method, path, access, schemas of request and replies, and a thin handler. `server.ts`
 * runs it, `openapi.ts` describes it, and `test/access/permissions.test.ts` checks its access. `C` is the caller that
 * authentication yields.
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { TObject, TSchema } from 'typebox';
import type { GatewayError } from '../base/errors.ts';
import type { Form } from '../base/form.ts';
import type { JsonDocument } from '../base/json.ts';
import type { AccessRule } from './access-rule.ts';
import type { GatewayResponse } from './message.ts';

export interface OperationReply {
  description: string;
  schema?: TSchema;
  contentType?: string;
  /** The reply as server-sent events, on request; the schema describes the data of an event. */
  events?: { schema: TSchema; description: string };
  /** Further content types of the same reply, as text. */
  texts?: readonly string[];
  /** Headers in addition to the common ones, with their descriptions. */
  headers?: Record<string, string>;
}

export interface MultipartRule {
  /** For the OpenAPI document. */
  schema: TSchema;
  /** Turns a form into the body. Throws GatewayError 400 with the name of a part. */
  toBody(form: Form): Record<string, unknown>;
}

export interface UploadRule {
  /** Default: any media type, or none. */
  contentType?: string;
  /** The body may be missing; `exchange.upload` is undefined then. */
  optional?: boolean;
  /** For the OpenAPI document. */
  schema: TSchema;
  maxBytes: number;
}

export interface Operation<C = unknown> {
  /** Stable name, `operationId` in the OpenAPI document. */
  id: string;
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /**
   * Below `/api/v1` (and `/v1`), with `{name}` segments, e.g. `/keys/{hash}`. `root: true` serves it at the root
   * instead.
   */
  path: string;
  root?: boolean;
  /**
   * With `root`: empty segments after the first two segments of the path are ignored, and so is a trailing slash. For
   * clients that append a path to a base URL that ends in a slash. Applies to all operations with these two segments.
   */
  passesOverEmptySegments?: boolean;
  /** The key may also be in the query, as `key`. */
  keyInQuery?: boolean;
  summary: string;
  tag: string;
  access: AccessRule;
  /** True if this request needs no key: it brings another credential, or the operation is open to all. */
  opens?(headers: IncomingHttpHeaders): boolean;
  params?: TObject;
  /**
   * Texts of the body may contain U+0000, because they are not stored in columns, or the operation refuses it itself.
   * Default: 400. In a path it is 404.
   */
  anyText?: boolean;
  /** Query values arrive as text; numbers and booleans are converted as the schema says before the check. */
  query?: TObject;
  /**
   * Unknown parameters of the query are ignored, because clients of this interface add some to every URL. Default: 400, except
   * where anyone has access.
   */
  anyQuery?: boolean;
  /**
   * `maxBytes` overrides the server's limit for control-plane bodies; `optional` accepts an empty body as undefined;
   * `form` is for the fields of an HTML form, which are not validated.
   */
  body?: {
    schema: TSchema;
    /** What the API description says instead, where the schema leaves checks to the handler. */
    described?: TSchema;
    maxBytes?: number;
    optional?: boolean;
    form?: boolean;
    /** The body may also be a `multipart/form-data`, which becomes JSON. */
    multipart?: MultipartRule;
  };
  /** Instead of `body`: a body that the handler reads as a stream (`exchange.upload`). */
  upload?: UploadRule;
  /** Content type of JSON replies and errors; default `application/json`. */
  contentType?: string;
  /** Lower-case name of an additional response header with the request id, for clients that expect it there. */
  requestIdHeader?: string;
  /** Successful replies by status. */
  replies: Record<number, OperationReply>;
  /** Error statuses in addition to those that follow from access, parameters and body (`statuses.ts`). */
  errors?: readonly number[];
  /** The schema of `encodeError`'s result. */
  errorSchema?: TSchema;
  /** Errors are also available as HTML pages, for operations that people open in a browser. */
  errorPages?: boolean;
  handle(exchange: Exchange<C>): void | Promise<void>;
  /** The body of an error response. Without it, or when it returns undefined, the error envelope is sent. */
  encodeError?(error: GatewayError, exchange: ErrorContext<C>): unknown;
}

/** Paths that clients know from another service, and that this server does not have. */
export interface UnservedPaths {
  /** Why it is not served, and what to use instead; undefined for any other path. */
  reason(path: string, headers: IncomingHttpHeaders): string | undefined;
  /** A path whose error format these errors have. */
  form: string;
}

/** The facts known when an error is rendered; `caller` is undefined before authentication. */
export interface ErrorContext<C = unknown> {
  requestId: string;
  caller: C | undefined;
  headers: IncomingHttpHeaders;
}

/** One request in progress. Exactly one of `reply` and writing to `response` answers it. */
export interface Exchange<C = unknown> {
  readonly requestId: string;
  /** Clock's wall time in ms when the request's head arrived. */
  readonly startedAt: number;
  readonly headers: IncomingHttpHeaders;
  /**
   * The host that the client asked for, with its port if there is one; as reported by a trusted proxy if there is one.
   */
  readonly host: string | undefined;
  /** As the client sees it, in front of any trusted proxy. */
  readonly protocol: 'http' | 'https';
  /** The path below which a trusted proxy serves the gateway, such as `/llm`; mostly empty. */
  readonly prefix: string;
  /** The client's address, as reported by trusted proxies; undefined after the connection has closed. */
  readonly clientAddress: string | undefined;
  readonly caller: C;
  readonly params: Record<string, string>;
  readonly query: Record<string, unknown>;
  /** The body's bytes and value; undefined when the operation takes none or it was empty. */
  readonly document: JsonDocument | undefined;
  /**
   * `document.value`, validated against `body.schema`; undefined without a document. Decoding a large body that is not
   * ASCII costs more than parsing it, so what only relays reads `document.structure` instead.
   */
  readonly body: unknown;
  /** The fields of a `form` body. */
  readonly form: URLSearchParams | undefined;
  /**
   * The body of an operation with `upload`. Reading rejects if the client disconnects, is too slow or sends too much.
   */
  readonly upload: AsyncIterable<Buffer> | undefined;
  /** True once the client has disconnected. */
  readonly closed: boolean;
  /** Calls `run` at most once if the client disconnects before the response is complete, or already has. */
  onClose(run: () => void): void;
  /** Sends a JSON response. */
  reply(status: number, value: unknown, headers?: Record<string, string>): void;
  /** For streams: the raw response. The server sets only the common headers on it (request id, CORS). */
  readonly response: GatewayResponse;
  /** Set by the handler for observers of finished exchanges, for example the row of a generation. */
  record: unknown;
  /** The same for the trace of the exchange. */
  trace: unknown;
  /** So far. */
  readonly durationMs: number;
}

/** An exchange that is over, for metrics and the log. Valid during the call only. */
export interface FinishedExchange<C = unknown> {
  readonly requestId: string;
  readonly method: string;
  /**
   * The operation's template (`/api/v1/keys/{hash}`); for an unknown path, with `*` for segments that no operation has.
   */
  readonly path: string;
  /** The client's address, as reported by trusted proxies; undefined if the connection closed before it was read. */
  readonly clientAddress: string | undefined;
  /** Undefined for a path without an operation. */
  readonly operation: Operation<C> | undefined;
  /** Undefined before authentication. */
  readonly caller: C | undefined;
  /** HTTP status of the response; 0 if the client disconnected before there was one. */
  readonly status: number;
  /** The client disconnected before the response was complete. */
  readonly closed: boolean;
  /** Wall time in ms. */
  readonly startedAt: number;
  readonly durationMs: number;
  readonly headers: IncomingHttpHeaders;
  readonly record: unknown;
  readonly trace: unknown;
}
