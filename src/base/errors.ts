/**
 * Errors of the API: one table of error types with their statuses (docs/guides/errors.md), and one class that carries a refusal
 * from where it is detected to where it is rendered: `http/envelope.ts` for the control plane,
 * `ServedFormat.encodeFailure` for inference.
 */

/** error_type -> HTTP status. 529 and 504 refine the table: an overloaded upstream is 529, a silent one 504. */
export const ERROR_STATUS = {
  context_length_exceeded: 400,
  max_tokens_exceeded: 400,
  token_limit_exceeded: 400,
  string_too_long: 400,
  invalid_request: 400,
  invalid_prompt: 400,
  content_policy_violation: 400,
  refusal: 400,
  invalid_image: 400,
  image_too_large: 400,
  image_too_small: 400,
  unsupported_image_format: 400,
  image_download_failed: 400,
  authentication: 401,
  payment_required: 402,
  permission_denied: 403,
  not_found: 404,
  image_not_found: 404,
  precondition_failed: 412,
  payload_too_large: 413,
  unprocessable: 422,
  rate_limit_exceeded: 429,
  server: 500,
  unmapped: 500,
  provider_unavailable: 502,
  provider_overloaded: 503,
  timeout: 504,
} as const;

export type ErrorType = keyof typeof ERROR_STATUS;

interface ErrorDetails {
  /** HTTP status if it differs from the table (405, 408, 409, 415, 431, 529, ...). */
  status?: number;
  /** Dotted path of the offending field, e.g. `messages[3].content[0].text`; also part of the message. */
  path?: string;
  /** Seconds for the `Retry-After` header. */
  retryAfterSeconds?: number;
  /** Copied to `error.metadata` (or its counterpart in the messages format). Never secrets. */
  metadata?: Record<string, unknown>;
  /** The error has no metadata, because clients of this path expect exactly the known members. */
  bare?: boolean;
  /** `error.availability`: which rule excluded all endpoints (docs/guides/routing.md). */
  availability?: Record<string, unknown>;
  /** `error.details` of the messages format, which its SDKs act on. */
  formDetails?: Record<string, unknown>;
  /** Response headers, e.g. `allow` on 405. */
  headers?: Record<string, string>;
  cause?: unknown;
}

/** The API reference, at the same host (`src/pages`). */
const DOCS_URL = '/docs';

/** A refusal or failure that is safe to show to the caller. Any other exception becomes a generic 500. */
export class GatewayError extends Error {
  readonly type: ErrorType;
  readonly status: number;
  readonly details: ErrorDetails;

  constructor(type: ErrorType, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = 'GatewayError';
    this.type = type;
    this.status = details.status ?? ERROR_STATUS[type];
    const { availability } = details;
    this.details = availability ? { ...details, availability: { ...availability, docs_url: DOCS_URL } } : details;
  }
}

/** 404. @param what e.g. `guardrail with this id` */
export function notFound(what: string): GatewayError {
  return new GatewayError('not_found', `There is no ${what}.`);
}

/** A resource that was looked up. @throws GatewayError 404 if it does not exist */
export function orNotFound<T>(found: T | undefined, what: string): T {
  if (found === undefined) throw notFound(what);
  return found;
}

/** 400 for one field: `path` is named in the message. */
export function invalidField(path: string, problem: string): GatewayError {
  return new GatewayError('invalid_request', path === '' ? `the body ${problem}` : `${path} ${problem}`, { path });
}
