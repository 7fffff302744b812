/**
 * Every way in which the gateway says no. One table of error types with their statuses (wire/common.md,
 * "Typed error set"); one class that carries a refusal from where it is noticed to where it is rendered:
 * `http/server.ts` for the control plane, `ServedFormat.encodeFailure` for inference.
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

export interface ErrorDetails {
  /** HTTP status when it is not the table's (405, 408, 409, 415, 431, 529, ...). */
  status?: number;
  /** Dotted path of the offending field, e.g. `messages[3].content[0].text`; also stands in the message. */
  path?: string;
  /** Seconds for the `Retry-After` header. */
  retryAfterSeconds?: number;
  /** Goes into `error.metadata` (or its counterpart of the messages form). Never secrets. */
  metadata?: Record<string, unknown>;
  /** The error has no metadata: clients of the path read it as what they know and nothing else. */
  bare?: boolean;
  /** `error.availability` of wire/common.md. */
  availability?: Record<string, unknown>;
  /** `error.details` of the messages form, which its SDKs act on. */
  formDetails?: Record<string, unknown>;
  /** Headers to answer with, e.g. `allow` on 405. */
  headers?: Record<string, string>;
  cause?: unknown;
}

/** A refusal or failure that may be shown to the caller as it is. Anything else that is thrown becomes a generic 500. */
export class GatewayError extends Error {
  readonly type: ErrorType;
  readonly status: number;
  readonly details: ErrorDetails;

  constructor(type: ErrorType, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = 'GatewayError';
    this.type = type;
    this.status = details.status ?? ERROR_STATUS[type];
    this.details = details;
  }
}

/** 400 for one field: `path` is named in the message. */
export function invalidField(path: string, problem: string): GatewayError {
  return new GatewayError('invalid_request', path === '' ? `the body ${problem}` : `${path} ${problem}`, { path });
}
