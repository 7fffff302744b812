/**
 * Errors inside a reply: an `error` event or a failed response. Error statuses have the same shape as chat's and are
 * decoded there.
 */
import { decodeInBand } from '../chat/failure.ts';
import { type FailureKind, type UpstreamFailure, withUsage } from '../conversation/failure.ts';
import { type Fields, isFields, textOrUndefined } from '../conversation/fields.ts';
import { decodeUsage } from './usage.ts';

export { decodeFailure } from '../chat/failure.ts';

/** A map, because an upstream may send a code such as `constructor`. */
const KIND_BY_CODE = new Map<unknown, FailureKind>(
  Object.entries({
    bio_policy: 'content_filter',
    content_filter: 'content_filter',
    context_length_exceeded: 'context_length',
    cyber_policy: 'content_filter',
    image_content_policy_violation: 'content_filter',
    insufficient_quota: 'quota',
    invalid_prompt: 'invalid_request',
    model_not_found: 'not_found',
    rate_limit_exceeded: 'rate_limit',
    server_is_overloaded: 'overloaded',
    slow_down: 'overloaded',
  }),
);

/** @param error `{code, message}` of a failed response or of an event */
export function failureFromError(error: Fields): UpstreamFailure {
  const read = decodeInBand('error', { error })!;
  const code = textOrUndefined(error['code']) ?? textOrUndefined(error['type']);
  const kind = KIND_BY_CODE.get(code);
  // Services report a context overflow with the code of any invalid prompt, so the decoded kind wins.
  return kind === undefined || read.kind === 'context_length' ? read : { ...read, kind };
}

/** The failure reported by a response with status 200; undefined if there is none. */
export function failureOfResponse(response: Fields): UpstreamFailure | undefined {
  const failure = statedFailure(response);
  return failure && withUsage(failure, decodeUsage(response));
}

function statedFailure({ error, status }: Fields): UpstreamFailure | undefined {
  if (isFields(error)) return failureFromError(error);
  if (typeof error === 'string' && error !== '') return failureFromError({ message: error });
  if (status !== 'failed' && status !== 'cancelled') return undefined;
  return failureFromError({ message: `the provider ended its answer as ${status}` });
}
