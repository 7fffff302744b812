/** Errors: decodes those of upstreams, encodes the gateway's own in this format's envelope. */
import type { GatewayError } from '../../base/errors.ts';
import { isContextOverflow, overflowFigures } from '../conversation/context-overflow.ts';
import {
  type FailureKind,
  KIND_BY_STATUS,
  LARGEST_RAW,
  type UpstreamFailure,
  withoutAccount,
} from '../conversation/failure.ts';
import { type Fields, fieldsOf, isFields, textOrUndefined } from '../conversation/fields.ts';
import type { FailureContext } from '../conversation/format.ts';

/** The format's error types, with the kind and the status of each within a stream. */
const NAMED: Record<string, { kind: FailureKind; status: number }> = {
  invalid_request_error: { kind: 'invalid_request', status: 400 },
  authentication_error: { kind: 'auth', status: 401 },
  billing_error: { kind: 'quota', status: 402 },
  permission_error: { kind: 'permission', status: 403 },
  not_found_error: { kind: 'not_found', status: 404 },
  request_too_large: { kind: 'too_large', status: 413 },
  rate_limit_error: { kind: 'rate_limit', status: 429 },
  api_error: { kind: 'server', status: 500 },
  timeout_error: { kind: 'timeout', status: 504 },
  overloaded_error: { kind: 'overloaded', status: 529 },
};

const BY_STATUS: ReadonlyMap<number, FailureKind> = new Map<number, FailureKind>([
  ...KIND_BY_STATUS,
  [409, 'server'],
  [425, 'server'],
  [524, 'timeout'],
]);

/** Limit for bodies that are not JSON, in characters. */
const LONGEST_TEXT = 4096;
const TOO_LONG = /prompt is too long/i;
const ASKS_FOR_LESS = /^input length and `max_tokens` exceed context limit/;
const NO_CREDIT = /credit balance|spend(ing)? limit|billing/i;
const FILTERED = /content[ _-]?(filter|policy)|content filtering/i;

/** Decodes a response with an error status; the body may be anything, including HTML. */
export function decodeFailure(status: number, body: string): UpstreamFailure {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    return {
      kind: kindOf(undefined, status, body.slice(0, LONGEST_TEXT)),
      status,
      message: `the provider answered with status ${status} and a body that is not JSON`,
      raw: body.slice(0, LARGEST_RAW),
    };
  }
  return failureFromError(value, status, body);
}

/**
 * Decodes an error object of this format. `status` is null for an `error` event or an error with status 200, where the
 * type decides.
 */
export function failureFromError(value: unknown, status: number | null, body?: string): UpstreamFailure {
  const outer = fieldsOf(value);
  const error: Fields = isFields(outer['error']) ? outer['error'] : outer;
  const type = textOrUndefined(error['type']);
  const own = status ?? NAMED[type ?? '']?.status ?? 500;
  const message =
    textOrUndefined(error['message']) ?? textOrUndefined(outer['error']) ?? `the provider failed with status ${own}`;
  const text = body ?? JSON.stringify(value);
  const details = isFields(error['details']) && text.length <= LARGEST_RAW ? error['details'] : undefined;
  return {
    // Thread errors are caused by the request, whatever the status.
    kind: String(details?.['error_code']).startsWith('thread_') ? 'invalid_request' : kindOf(type, own, message),
    ...(details && { details }),
    status: own,
    message: withoutAccount(message),
    code: type ?? null,
    raw: text.length > LARGEST_RAW ? text.slice(0, LARGEST_RAW) : value,
  };
}

function kindOf(type: string | undefined, status: number, message: string): FailureKind {
  const named = NAMED[type ?? '']?.kind;
  // This vendor also reports exhausted credit and blocked answers as `invalid_request_error`, and compatible servers
  // use `api_error` for anything, so other statuses are more precise.
  const vague = named === 'invalid_request' || (named === 'server' && status < 500);
  const mayOverflow = named === undefined || vague || named === 'server';
  if (mayOverflow && isContextOverflow(status, message)) return 'context_length';
  if (named !== undefined && !vague) return named;
  if (status >= 500) return BY_STATUS.get(status) ?? 'server';
  if (status !== 400 && status !== 413 && status !== 422) return BY_STATUS.get(status) ?? 'invalid_request';
  if (NO_CREDIT.test(message)) return 'quota';
  if (FILTERED.test(message)) return 'content_filter';
  return BY_STATUS.get(status) ?? 'invalid_request';
}

const TYPE_BY_STATUS: Record<number, string> = {
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  408: 'timeout_error',
  429: 'rate_limit_error',
  503: 'overloaded_error',
  504: 'timeout_error',
  524: 'timeout_error',
  529: 'overloaded_error',
};

/**
 * The vendor's own wording for an overlong prompt, followed by the upstream's. Clients match it to compact their
 * history or to request less output.
 */
function overflowMessage(message: string): string {
  const { input, output, limit } = overflowFigures(message) ?? {};
  if (input !== undefined && output !== undefined) {
    if (ASKS_FOR_LESS.test(message)) return message;
    const sum = `${input} + ${output} > ${limit}, decrease input length or \`max_tokens\` and try again`;
    return `input length and \`max_tokens\` exceed context limit: ${sum}; prompt is too long for this output: ${message}`;
  }
  if (TOO_LONG.test(message)) return message;
  if (input === undefined) return `prompt is too long: ${message}`;
  return `prompt is too long: ${input} tokens > ${limit} maximum (${message})`;
}

/** The `error` member of the envelope and of the error event. */
export function errorMember(error: GatewayError): Fields {
  const member: Fields = {
    type: TYPE_BY_STATUS[error.status] ?? (error.status >= 500 ? 'api_error' : 'invalid_request_error'),
    message: error.type === 'context_length_exceeded' ? overflowMessage(error.message) : error.message,
    error_type: error.type,
  };
  if (error.details.formDetails !== undefined) member['details'] = error.details.formDetails;
  if (error.details.availability !== undefined) member['availability'] = error.details.availability;
  return member;
}

export function encodeFailure(error: GatewayError, about: FailureContext): Fields {
  const envelope: Fields = { type: 'error', error: errorMember(error), request_id: about.generationId };
  if (error.details.metadata !== undefined) envelope['metadata'] = error.details.metadata;
  if (about.metadata !== undefined && error.status !== 500) envelope[about.metadata.key] = about.metadata.value;
  return envelope;
}
