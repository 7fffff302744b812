/**
 * Errors of Google services (`google.rpc.Status`): `{error: {code, message, status, details}}`, alone or as the only
 * item of a list (a streaming method without `alt=sse`).
 */
import { isContextOverflow } from '../conversation/context-overflow.ts';
import {
  type FailureKind,
  KIND_BY_STATUS,
  LARGEST_RAW,
  type UpstreamFailure,
  withoutAccount,
} from '../conversation/failure.ts';
import { type Fields, fieldsOf, isFields, listOf, textOf, textOrUndefined } from '../conversation/fields.ts';

/** `google.rpc.Code` names. */
const KINDS: Record<string, FailureKind> = {
  INVALID_ARGUMENT: 'invalid_request',
  FAILED_PRECONDITION: 'invalid_request',
  OUT_OF_RANGE: 'invalid_request',
  UNAUTHENTICATED: 'auth',
  PERMISSION_DENIED: 'permission',
  NOT_FOUND: 'not_found',
  RESOURCE_EXHAUSTED: 'rate_limit',
  ABORTED: 'server',
  CANCELLED: 'server',
  UNKNOWN: 'server',
  INTERNAL: 'server',
  DATA_LOSS: 'server',
  UNAVAILABLE: 'overloaded',
  DEADLINE_EXCEEDED: 'timeout',
};

/** Characters inspected of a body that is not JSON. */
const LONGEST_TEXT = 4096;
const NO_MODEL = /is not found for API version|model .*(not found|is not supported)|not supported for generateContent/i;
const BAD_KEY = /API[_ ]key not valid|API key expired|API key not found|pass a valid API key/i;
const NO_MONEY =
  /billing|prepayment|credits? (are|is) (depleted|exhausted)|not available in your country|location is not supported/i;
const TOO_LARGE = /request payload size exceeds/i;
/** A daily quota does not recover within minutes. */
const DAILY = /PerDay/i;

/** Decodes a reply with an error status. The body may be anything, including HTML. */
export function decodeFailure(status: number, body: string): UpstreamFailure {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    return {
      kind: kindOf(undefined, status, {}, body.slice(0, LONGEST_TEXT)),
      status,
      message: `the provider answered with status ${status} and a body that is not JSON`,
      raw: body.slice(0, LARGEST_RAW),
    };
  }
  return failureOf(value, status, body);
}

/** Decodes an error object. `status` is null for an error inside a 200, whose own code then counts. */
export function failureOf(value: unknown, status: number | null, body?: string): UpstreamFailure {
  const outer = fieldsOf(Array.isArray(value) ? value[0] : value);
  const error = isFields(outer['error']) ? outer['error'] : outer;
  const code = typeof error['code'] === 'number' ? error['code'] : undefined;
  const own = status ?? code ?? 500;
  const word = textOrUndefined(error['status']);
  const message =
    textOrUndefined(error['message']) ?? textOrUndefined(outer['error']) ?? `the provider failed with status ${own}`;
  const details = listOf(error['details']).map(fieldsOf);
  const failure: UpstreamFailure = {
    kind: kindOf(word, own, reasonOf(details), message),
    status: own,
    message: withoutAccount(message),
    code: word ?? null,
    raw: rawOf(outer, body),
  };
  const wait = retryDelay(details);
  if (wait !== undefined && (failure.kind === 'rate_limit' || failure.kind === 'overloaded')) {
    failure.retryAfterSeconds = wait;
  }
  return failure;
}

/** Removes debug details, which may repeat our API key. */
function rawOf(outer: Fields, body: string | undefined): unknown {
  if ((body?.length ?? 0) > LARGEST_RAW) return body?.slice(0, LARGEST_RAW);
  const error = outer['error'];
  if (!isFields(error) || !Array.isArray(error['details'])) return outer;
  const details = error['details'].filter((one) => !textOf(fieldsOf(one)['@type']).endsWith('DebugInfo'));
  return { ...outer, error: { ...error, details } };
}

interface Reason {
  reason?: string;
  daily?: boolean;
}

function reasonOf(details: readonly Fields[]): Reason {
  const found: Reason = {};
  for (const detail of details) {
    const type = textOf(detail['@type']);
    if (type.endsWith('ErrorInfo')) found.reason = textOf(detail['reason']);
    if (type.endsWith('QuotaFailure')) {
      found.daily = listOf(detail['violations']).some((one) => DAILY.test(textOf(fieldsOf(one)['quotaId'])));
    }
  }
  return found;
}

function kindOf(word: string | undefined, status: number, { reason, daily }: Reason, message: string): FailureKind {
  if (reason === 'API_KEY_INVALID' || reason === 'API_KEY_EXPIRED') return 'auth';
  if (reason === 'BILLING_DISABLED' || reason === 'CONSUMER_SUSPENDED') return 'quota';
  const named = KINDS[word ?? ''];
  const kind = named ?? KIND_BY_STATUS.get(status) ?? (status >= 500 ? 'server' : 'invalid_request');
  if (kind === 'rate_limit' && daily) return 'quota';
  if ((kind === 'invalid_request' || kind === 'server') && isContextOverflow(status, message)) return 'context_length';
  if (kind !== 'invalid_request') return kind;
  if (BAD_KEY.test(message)) return 'auth';
  if (TOO_LARGE.test(message)) return 'too_large';
  if (NO_MODEL.test(message)) return 'not_found';
  return NO_MONEY.test(message) ? 'quota' : kind;
}

/** Seconds of `RetryInfo` (`"34.4s"`), rounded up. */
function retryDelay(details: readonly Fields[]): number | undefined {
  for (const detail of details) {
    const [, seconds] = /^(\d+(?:\.\d+)?)s$/.exec(textOf(detail['retryDelay'])) ?? [];
    if (seconds !== undefined) return Math.ceil(Number(seconds));
  }
  return undefined;
}
