/** Errors inside answers: of an `error` event, of a failed response. Those of error statuses are read as chat's, whose shape they have. */
import { decodeInBand } from '../chat/failure.ts';
import type { FailureKind, UpstreamFailure } from '../conversation/failure.ts';
import { type Fields, isFields, textOrUndefined } from '../conversation/fields.ts';

export { decodeFailure } from '../chat/failure.ts';

/** A map, not an object: an upstream may say `constructor`. */
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
  // Services give an overflow the code of any bad prompt.
  return kind === undefined || read.kind === 'context_length' ? read : { ...read, kind };
}

/** The failure that a response with status 200 reports; undefined when it reports none. */
export function failureOfResponse(response: Fields): UpstreamFailure | undefined {
  const { error, status } = response;
  if (isFields(error)) return failureFromError(error);
  if (typeof error === 'string' && error !== '') return failureFromError({ message: error });
  if (status !== 'failed' && status !== 'cancelled') return undefined;
  return failureFromError({ message: `the provider ended its answer as ${status}` });
}
