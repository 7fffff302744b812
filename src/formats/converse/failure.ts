/**
 * Errors of AWS services: `{"message": ...}` with the name of the exception in a header, in `__type`, or in the head of a
 * message of the event stream.
 */
import { isContextOverflow } from '../conversation/context-overflow.ts';
import {
  type FailureKind,
  KIND_BY_STATUS,
  LARGEST_RAW,
  type UpstreamFailure,
  withoutAccount,
} from '../conversation/failure.ts';
import { fieldsOf, textOrUndefined } from '../conversation/fields.ts';

/** The exceptions of the service and of its doorkeeper, lower case, with the status that each stands for in a stream. */
const NAMED = new Map<string, { kind: FailureKind; status: number }>(
  Object.entries({
    accessdenied: { kind: 'permission', status: 403 },
    conflict: { kind: 'server', status: 409 },
    expiredtoken: { kind: 'auth', status: 403 },
    incompletesignature: { kind: 'auth', status: 403 },
    internalserver: { kind: 'server', status: 500 },
    internalfailure: { kind: 'server', status: 500 },
    invalidclienttokenid: { kind: 'auth', status: 403 },
    invalidsignature: { kind: 'auth', status: 403 },
    missingauthenticationtoken: { kind: 'auth', status: 403 },
    modelerror: { kind: 'server', status: 424 },
    modelnotready: { kind: 'overloaded', status: 429 },
    modelstreamerror: { kind: 'server', status: 424 },
    modeltimeout: { kind: 'timeout', status: 408 },
    optinrequired: { kind: 'permission', status: 403 },
    requestexpired: { kind: 'auth', status: 403 },
    resourcenotfound: { kind: 'not_found', status: 404 },
    servicequotaexceeded: { kind: 'quota', status: 400 },
    serviceunavailable: { kind: 'overloaded', status: 503 },
    throttling: { kind: 'rate_limit', status: 429 },
    toomanyrequests: { kind: 'rate_limit', status: 429 },
    unrecognizedclient: { kind: 'auth', status: 403 },
    validation: { kind: 'invalid_request', status: 400 },
  } as const),
);

const NO_MODEL =
  /model identifier is invalid|on-demand throughput|model .*(not found|(does not|doesn.t|could not be|isn.t|is not) (exist|found|supported in))|end of its life/i;
const BAD_CREDENTIAL = /security token|signature|credential|api key|bearer token/i;
const FILTERED = /content[ _-]?(filter|policy)|blocked by/i;

/** An answer with an error status; `headers` are those that came with it, lower case. */
export function decodeFailure(
  status: number,
  body: string,
  headers?: Readonly<Record<string, string>>,
): UpstreamFailure {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    value = body.slice(0, LARGEST_RAW);
  }
  return failureFromException(headers?.['x-amzn-errortype'] ?? '', value, status);
}

/**
 * @param type the name of the exception as a head told it (`ThrottlingException:http://...`, `throttlingException`), '' when none did
 * @param value its body, parsed; a text when it is no JSON
 * @param status of the answer; null inside a stream or behind a 200, where the type tells it
 */
export function failureFromException(type: string, value: unknown, status: number | null): UpstreamFailure {
  const body = fieldsOf(value);
  const code =
    nameOf(type) ?? nameOf(textOrUndefined(body['__type']) ?? '') ?? nameOf(textOrUndefined(body['code']) ?? '');
  const named = code === undefined ? undefined : NAMED.get(code.toLowerCase().replace(/(exception|error)$/, ''));
  // What the model behind the service answered is more than that it did.
  const original = body['originalStatusCode'];
  const own = status ?? (typeof original === 'number' ? original : (named?.status ?? 500));
  const told =
    textOrUndefined(body['originalMessage']) ?? textOrUndefined(body['message']) ?? textOrUndefined(body['Message']);
  const message = told || `the provider failed with ${code === undefined ? `status ${own}` : code}`;
  return {
    kind: kindOf(named?.kind, own, message),
    status: own,
    message: withoutAccount(message),
    code: code ?? null,
    raw: bounded(value),
  };
}

/** `ThrottlingException` of `com.amazon.coral#ThrottlingException:http://...`; undefined for anything that is no name. */
function nameOf(type: string): string | undefined {
  const [name = ''] = type.split(':');
  const bare = name.slice(Math.max(name.lastIndexOf('#'), name.lastIndexOf('.')) + 1);
  return /^[A-Za-z]+$/.test(bare) ? bare : undefined;
}

function kindOf(named: FailureKind | undefined, status: number, message: string): FailureKind {
  // The models behind the service word it in many ways, some with the status of a fault of their own.
  const mayOverflow = named === undefined || named === 'invalid_request' || named === 'server';
  if (mayOverflow && isContextOverflow(status, message)) return 'context_length';
  if (named === 'server') return KIND_BY_STATUS.get(status) ?? named;
  if (named === 'permission' && BAD_CREDENTIAL.test(message)) return 'auth';
  if (named !== undefined && named !== 'invalid_request') return named;
  if (status === 403 && BAD_CREDENTIAL.test(message)) return 'auth';
  if (status >= 500 || (status !== 400 && status !== 422)) {
    return KIND_BY_STATUS.get(status) ?? (status >= 500 ? 'server' : 'invalid_request');
  }
  if (NO_MODEL.test(message)) return 'not_found';
  if (FILTERED.test(message)) return 'content_filter';
  return 'invalid_request';
}

function bounded(value: unknown): unknown {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text !== undefined && text.length > LARGEST_RAW ? text.slice(0, LARGEST_RAW) : value;
}
