/** Errors of token exchange: `{error, error_description}` of RFC 6749, 5.2, instead of the usual envelope. */
import { GatewayError } from '../../base/errors.ts';

/** The last one is from RFC 8693, 2.2.2; the others are those that the public SDK knows. */
type OAuthCode =
  | 'invalid_request'
  | 'invalid_grant'
  | 'unsupported_grant_type'
  | 'invalid_scope'
  | 'server_error'
  | 'temporarily_unavailable'
  | 'invalid_target';

/** RFC 6749, 5.1: responses must not be cached. */
export const UNKEPT = Object.freeze({ 'Cache-Control': 'no-store', Pragma: 'no-cache' });

const CODE = 'oauth_error';
/** RFC 6749, 5.2: printable ASCII without quotes and backslashes. */
const NOT_IN_DESCRIPTIONS = /[^\x20\x21\x23-\x5b\x5d-\x7e]/g;

/** 400: an error that the client can correct. */
export function refusal(code: OAuthCode, description: string, cause?: unknown): GatewayError {
  return new GatewayError('invalid_request', description, {
    headers: UNKEPT,
    metadata: { [CODE]: code },
    ...(cause !== undefined && { cause }),
  });
}

/** 429: too many exchanges. */
export function tooMany(waitMs: number): GatewayError {
  return new GatewayError('rate_limit_exceeded', 'Too many exchanges. Try again later.', {
    headers: UNKEPT,
    metadata: { [CODE]: 'temporarily_unavailable' },
    retryAfterSeconds: waitMs / 1000,
  });
}

/** 503: the token cannot be verified at the moment. */
export function notNow(description: string, cause?: unknown): GatewayError {
  return new GatewayError('provider_overloaded', description, {
    headers: UNKEPT,
    metadata: { [CODE]: 'temporarily_unavailable' },
    retryAfterSeconds: 5,
    ...(cause !== undefined && { cause }),
  });
}

/** The body of an error response. */
export function encodeOAuthError(error: GatewayError): { error: OAuthCode; error_description: string } {
  const given = error.details.metadata?.[CODE] as OAuthCode | undefined;
  const description = error.message.replaceAll('"', "'").replace(NOT_IN_DESCRIPTIONS, '?');
  return { error: given ?? defaultCode(error.status), error_description: description };
}

function defaultCode(status: number): OAuthCode {
  if (status === 503 || status === 429) return 'temporarily_unavailable';
  return status >= 500 ? 'server_error' : 'invalid_request';
}
