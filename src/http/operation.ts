/**
 * One HTTP operation as data: method, path, who may call it, what goes in and out, and a thin handler. `server.ts`
 * executes it, `openapi.ts` describes it, `test/access.test.ts` walks it. `C` is the caller that authentication yields.
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { TObject, TSchema } from 'typebox';
import type { GatewayError } from '../base/errors.ts';
import type { JsonDocument } from '../base/json.ts';
import type { GatewayResponse } from './message.ts';

/**
 * Who may call: anybody; any valid key; management keys only (403 otherwise); inference keys only (a management key is
 * refused, wire/keys.md "Facts"); tokens of identity providers only, which `any` does not mean.
 */
export type Access = 'none' | 'any' | 'management' | 'inference' | 'scim';

export interface OperationReply {
  description: string;
  schema?: TSchema;
  contentType?: string;
  /** The answer as server-sent events, on request; the schema is of what an event carries. */
  events?: { schema: TSchema; description: string };
  /** Further content types of the same answer, as text. */
  texts?: readonly string[];
  /** Headers besides those of every answer, with what they say. */
  headers?: Record<string, string>;
}

export interface UploadRule {
  contentType: string;
  /** For the OpenAPI document. */
  schema: TSchema;
  maxBytes: number;
}

export interface Operation<C = unknown> {
  /** Stable name, `operationId` in the OpenAPI document. */
  id: string;
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Below `/api/v1` (and `/v1`), with `{name}` segments, e.g. `/keys/{hash}`. `root: true` serves it at the root instead. */
  path: string;
  root?: boolean;
  /**
   * With `root`: doubled slashes, and one at the end, mean nothing behind the first two segments of the path. For clients
   * that put a path behind an address which ends in a slash itself. Holds for all operations with these two segments.
   */
  passesOverEmptySegments?: boolean;
  summary: string;
  tag: string;
  access: Access;
  /** True for a request that needs no key for this operation: it brought another credential, or everybody may. */
  opens?(headers: IncomingHttpHeaders): boolean;
  params?: TObject;
  /** Every query value arrives as text; numbers and booleans are converted as the schema says before the check. */
  query?: TObject;
  /** `maxBytes` overrides the server's limit for control-plane bodies; `optional` lets an empty body pass as undefined; `form`: fields of a page's form, unchecked. */
  body?: { schema: TSchema; maxBytes?: number; optional?: boolean; form?: boolean };
  /** In place of `body`: a body of this media type that the handler reads as a stream (`exchange.upload`). */
  upload?: UploadRule;
  /** Of answers in JSON, errors too; default `application/json`. */
  contentType?: string;
  /** A further header of every answer that names the request, for clients that know it by that; lower case. */
  requestIdHeader?: string;
  /** By status, but for errors. */
  replies: Record<number, OperationReply>;
  /** Statuses of errors besides those that follow from access, parameters and body (`statuses.ts`). */
  errors?: readonly number[];
  /** What `encodeError` yields. */
  errorSchema?: TSchema;
  /** Errors are pages as well, where a person is asked. */
  errorPages?: boolean;
  handle(exchange: Exchange<C>): void | Promise<void>;
  /** The body of an error answer; default, also when this yields undefined, is the envelope of wire/common.md. */
  encodeError?(error: GatewayError, exchange: ErrorContext<C>): unknown;
}

/** What is known when an error is rendered; `caller` is undefined before authentication. */
export interface ErrorContext<C = unknown> {
  requestId: string;
  caller: C | undefined;
  headers: IncomingHttpHeaders;
}

/** One request being answered. Exactly one of `reply` and writing to `response` answers it. */
export interface Exchange<C = unknown> {
  readonly requestId: string;
  /** Clock's wall time in ms when the request's head arrived. */
  readonly startedAt: number;
  readonly headers: IncomingHttpHeaders;
  /** The host, with a port or not, that the client asked for; behind a trusted proxy what that proxy says. */
  readonly host: string | undefined;
  /** As the client sees it, in front of any trusted proxy. */
  readonly protocol: 'http' | 'https';
  /** Where the client is, as the trusted proxies say; undefined when the connection has ended. */
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
  /** The fields of a body that is a `form`. */
  readonly form: URLSearchParams | undefined;
  /** The body of an operation with `upload`; reading it rejects when the client leaves, is too slow or sends too much. */
  readonly upload: AsyncIterable<Buffer> | undefined;
  /** True once the client is gone. */
  readonly closed: boolean;
  /** Calls `run` when the client goes away before the answer is complete; at most once, also when it is gone already. */
  onClose(run: () => void): void;
  /** Answers with JSON. */
  reply(status: number, value: unknown, headers?: Record<string, string>): void;
  /** For streams: the raw response; the server has set nothing on it but the common headers (request id, CORS). */
  readonly response: GatewayResponse;
  /** What the handler leaves for who observes finished exchanges, such as the row of a generation. */
  record: unknown;
}

/** An exchange that is over, for metrics and the log. Valid during the call only. */
export interface FinishedExchange<C = unknown> {
  readonly requestId: string;
  readonly method: string;
  /** As its operation writes it (`/api/v1/keys/{hash}`); where there is none, with `*` for segments that no operation has. */
  readonly path: string;
  /** Where the client is, as the trusted proxies say; undefined when the connection ended before anybody looked. */
  readonly clientAddress: string | undefined;
  /** undefined where there is none. */
  readonly operation: Operation<C> | undefined;
  /** undefined before authentication. */
  readonly caller: C | undefined;
  /** HTTP status of the answer; 0 when the client left before it had one. */
  readonly status: number;
  /** The client left before the answer was complete. */
  readonly closed: boolean;
  readonly durationMs: number;
  readonly record: unknown;
}
