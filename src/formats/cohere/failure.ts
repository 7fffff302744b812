/** Error bodies of the cohere format: `{"id", "message", "error_type"?}`. */
import { isContextOverflow } from '../conversation/context-overflow.ts';
import {
  type FailureKind,
  KIND_BY_STATUS,
  LARGEST_RAW,
  type UpstreamFailure,
  withoutAccount,
} from '../conversation/failure.ts';
import { fieldsOf, textOrUndefined } from '../conversation/fields.ts';

/** Cohere's own status code for filtered content. */
const BLOCKED = 498;

const NO_MODEL = /model .*(not found|does not exist|was removed|is not available)|finetune .* not found/i;
const BAD_KEY = /api (key|token)|unauthorized/i;
const SPENT = /billing|payment|past the per month|monthly/i;
const FILTERED = /content[ _-]?(filter|policy)|blocked/i;

/** Decodes a reply with an error status. The body may be anything, including HTML. */
export function decodeFailure(status: number, body: string): UpstreamFailure {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    value = undefined;
  }
  const error = fieldsOf(value);
  const told = textOrUndefined(error['message']) ?? textOrUndefined(error['error']);
  const message = told || `the provider answered with status ${status}`;
  const code = textOrUndefined(error['error_type']) ?? null;
  return {
    kind: kindOf(status, message, code),
    status,
    message: withoutAccount(message),
    code,
    raw: value === undefined || body.length > LARGEST_RAW ? body.slice(0, LARGEST_RAW) : value,
  };
}

/** The failure of a reply that ended with an error. */
export function failureFromFinish(reason: string, error: unknown): UpstreamFailure {
  const told = textOrUndefined(error) ?? textOrUndefined(fieldsOf(error)['message']);
  const message = told || `the provider ended its answer with ${reason}`;
  if (reason === 'TIMEOUT') return { kind: 'timeout', status: 504, message, code: reason };
  const kind = isContextOverflow(null, message) ? 'context_length' : 'server';
  return { kind, status: kind === 'server' ? 500 : 400, message: withoutAccount(message), code: reason };
}

function kindOf(status: number, message: string, code: string | null): FailureKind {
  if (code === 'TOO_MANY_TOKENS') return 'context_length';
  if (status === BLOCKED) return 'content_filter';
  if (isContextOverflow(status, message)) return 'context_length';
  if (status >= 500) return KIND_BY_STATUS.get(status) ?? 'server';
  if (status === 429 && SPENT.test(message)) return 'quota';
  if (status !== 400 && status !== 422) return KIND_BY_STATUS.get(status) ?? 'invalid_request';
  if (NO_MODEL.test(message)) return 'not_found';
  if (BAD_KEY.test(message)) return 'auth';
  return FILTERED.test(message) ? 'content_filter' : 'invalid_request';
}
