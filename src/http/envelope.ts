/** The error envelope ([errors](../../docs/guides/errors.md)), and how a thrown value becomes a response. */
import { GatewayError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { ErrorContext, Operation } from './operation.ts';

interface ErrorEnvelope {
  error: {
    code: number;
    message: string;
    metadata?: Record<string, unknown>;
    availability?: Record<string, unknown>;
  };
  user_id?: string | null;
}

/** @param userId id of the account, undefined before authentication */
export function encodeEnvelope(error: GatewayError, userId: string | null | undefined): ErrorEnvelope {
  const { metadata, availability, bare } = error.details;
  const envelope: ErrorEnvelope = {
    error: {
      code: error.status,
      message: error.message,
      ...(!bare && { metadata: { ...metadata, error_type: error.type } }),
    },
  };
  if (availability) envelope.error.availability = availability;
  if (userId !== undefined) envelope.user_id = userId;
  return envelope;
}

/** The operation's own body for an error; undefined if it has none or its encoder fails. */
export function ownErrorBody<C>(
  operation: Operation<C> | undefined,
  error: GatewayError,
  context: ErrorContext<C>,
  log: Log,
): unknown {
  try {
    return operation?.encodeError?.(error, context);
  } catch (failure) {
    log.error('error encoder failed', { request_id: context.requestId, error: failure });
    return undefined;
  }
}

/**
 * The error as the caller may see it: a GatewayError as it is, anything else as a 500 with nothing but the request id.
 */
export function presentableError(error: unknown, requestId: string): GatewayError {
  if (error instanceof GatewayError) return error;
  return new GatewayError('server', `Internal error (request ${requestId}).`, { cause: error });
}

/** The headers that an error needs, whatever its body. */
export function errorHeaders(error: GatewayError): Record<string, string> | undefined {
  const { headers, retryAfterSeconds } = error.details;
  if (headers === undefined && retryAfterSeconds === undefined && error.status !== 401) return undefined;
  const result: Record<string, string> = error.status === 401 ? { 'WWW-Authenticate': 'Bearer' } : {};
  if (retryAfterSeconds !== undefined) result['Retry-After'] = String(Math.max(0, Math.ceil(retryAfterSeconds)));
  return Object.assign(result, headers);
}

/** The error when the server is at a limit of concurrent work. */
export function busy(): GatewayError {
  return new GatewayError('provider_overloaded', 'the gateway is busy', {
    retryAfterSeconds: 1,
    metadata: { retryable: true },
  });
}
