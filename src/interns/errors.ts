/** Errors of intern routes: each names a reason that clients act on, and whether a repeated request may succeed. */
import { GatewayError } from '../base/errors.ts';

type Status = 400 | 404 | 408 | 409 | 410 | 413 | 415 | 429 | 500 | 502 | 503 | 504;

/** The usual status of a reason, and whether a retry can help. */
const REASONS = {
  bad_request: [400, false],
  invalid_body: [400, false],
  invalid_idempotency_key: [400, false],
  not_found: [404, false],
  name_taken: [409, false],
  intern_busy: [409, false],
  payload_too_large: [413, false],
  unsupported_media_type: [415, false],
  internal_error: [500, true],
  upstream_unavailable: [502, true],
  attachment_failed: [410, false],
  busy: [503, true],
  client_closed_request: [410, false],
  interaction_not_pending: [409, false],
  interaction_unknown: [404, false],
  intern_not_ready: [409, true],
  intern_rejected: [502, false],
  intern_unreachable: [502, true],
  rate_limited: [429, true],
  run_ended: [410, false],
  stream_severed: [502, true],
  timeout: [408, true],
  turn_failed: [502, false],
} as const satisfies Record<string, readonly [Status, boolean]>;

export type Reason = keyof typeof REASONS;

interface ReasonDetails {
  /** If it differs from the usual one. */
  status?: Status;
  cause?: unknown;
  retryAfterSeconds?: number;
}

export function internError(reason: Reason, message: string, details: ReasonDetails = {}): GatewayError {
  const status = details.status ?? REASONS[reason][0];
  const type = status >= 500 ? 'server' : status === 404 ? 'not_found' : 'invalid_request';
  return new GatewayError(type, message, { ...details, status, metadata: reasonMetadata(reason) });
}

function reasonMetadata(reason: Reason): { reason: Reason; retryable: boolean } {
  return { reason, retryable: REASONS[reason][1] };
}

/** The reason of an error of the HTTP layer, by its status. Undefined: such errors have no metadata. */
function reasonOfStatus(status: number, invalid: Reason): Reason | undefined {
  if (status === 400) return invalid;
  if (status === 401 || status === 403) return undefined;
  const reasons: Readonly<Record<number, Reason>> = {
    404: 'not_found',
    408: 'timeout',
    409: 'intern_busy',
    413: 'payload_too_large',
    415: 'unsupported_media_type',
    429: 'rate_limited',
    502: 'upstream_unavailable',
    503: 'busy',
    504: 'timeout',
  };
  return reasons[status] ?? (status < 500 ? 'bad_request' : 'internal_error');
}

/** `encodeError` of the routes. @param invalid the reason of a malformed request */
export function encodeInternError(invalid: Reason) {
  return (error: GatewayError): object => {
    const { metadata, bare } = error.details;
    const { status: code, message } = error;
    if (metadata?.['reason'] !== undefined) return { error: { code, message, metadata } };
    const reason = bare ? undefined : reasonOfStatus(code, invalid);
    return { error: { code, message, ...(reason !== undefined && { metadata: reasonMetadata(reason) }) } };
  };
}
