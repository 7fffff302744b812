/** Encodes a complete reply, and errors, for a client of the responses format. */
import { GatewayError } from '../../base/errors.ts';
import { messageOf } from '../chat/encode-failure.ts';
import type { Turn } from '../conversation/conversation.ts';
import type { Fields } from '../conversation/fields.ts';
import type { Closing, FailureContext, Stamp } from '../conversation/format.ts';
import { Output } from './output.ts';
import { endOf, responseOf } from './response.ts';

/** Encodes the first choice of the turn; this format has no others. */
export function encodeReply(turn: Turn, stamp: Stamp, closing: Closing): Fields {
  const choice = turn.choices[0] ?? { parts: [], finish: { unified: 'stop' as const, native: null } };
  if (choice.finish.unified === 'error') throw endedInError();
  const output = new Output(stamp.id, () => {});
  const first = choice.parts.findIndex((part) => part.type === 'text' && part.text !== '');
  choice.parts.forEach((part, index) => {
    output.start(index, part);
    if (index === first) output.logprobs(choice.logprobs?.content ?? []);
    output.stop(index);
  });
  output.finish(choice.finish.unified);
  const state = {
    ...endOf(choice.finish),
    output: output.end(),
    created: turn.created ?? stamp.created,
    serviceTier: turn.serviceTier,
  };
  const response = responseOf(stamp, state, { ...closing, usage: closing.usage ?? turn.usage });
  for (const [key, value] of Object.entries(turn.extras?.responses ?? {}))
    if (!(key in response)) response[key] = value;
  return response;
}

export function endedInError(): GatewayError {
  return new GatewayError('provider_unavailable', 'the provider ended its answer with an error');
}

/** The common error envelope. This format also repeats the error type at the top level. */
export function encodeFailure(error: GatewayError, about: FailureContext): Fields {
  const { metadata, availability } = error.details;
  const body: Fields = {
    error: {
      code: error.status,
      message: messageOf(error),
      ...(metadata !== undefined && { metadata }),
      ...(availability !== undefined && { availability }),
    },
    error_type: error.type,
  };
  if (about.userId !== undefined) body['user_id'] = about.userId;
  // A 500 is our own fault: it must not expose routing state.
  if (about.metadata !== undefined && error.status !== 500) body[about.metadata.key] = about.metadata.value;
  return body;
}
