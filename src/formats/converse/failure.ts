/**
 * Errors of AWS services: `{"message": ...}`, with the exception name in a header, in `__type`, or in the headers of an
 * event-stream message.
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

/** Exceptions of the service and of the AWS front end, lower case, with the status that each has inside a stream. */
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

/** Decodes a reply with an error status. `headers` are the response headers, lower case. */
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
 * @param type exception name from a header (`ThrottlingException:http://...`, `throttlingException`); '' if absent
 * @param value its parsed body; a string if it is not JSON
 * @param status of the response; null inside a stream or a 200, where the type determines it
 */
export function failureFromException(type: string, value: unknown, status: number | null): UpstreamFailure {
  const body = fieldsOf(value);
  const code =
    nameOf(type) ?? nameOf(textOrUndefined(body['__type']) ?? '') ?? nameOf(textOrUndefined(body['code']) ?? '');
  const named = code === undefined ? undefined : NAMED.get(code.toLowerCase().replace(/(exception|error)$/, ''));
  // The error of the underlying model says more than the wrapper's status.
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

/** `ThrottlingException` from `com.amazon.coral#ThrottlingException:http://...`; undefined if there is no name. */
function nameOf(type: string): string | undefined {
  const [name = ''] = type.split(':');
  const bare = name.slice(Math.max(name.lastIndexOf('#'), name.lastIndexOf('.')) + 1);
  return /^[A-Za-z]+$/.test(bare) ? bare : undefined;
}

function kindOf(named: FailureKind | undefined, status: number, message: string): FailureKind {
  // The underlying models word it differently, some with a 5xx status.
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
