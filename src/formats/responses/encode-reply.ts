/** A whole answer for a client of this form, and its errors. */
import { GatewayError } from '../../base/errors.ts';
import { messageOf } from '../chat/encode-failure.ts';
import type { Turn } from '../conversation/conversation.ts';
import type { Fields } from '../conversation/fields.ts';
import type { Closing, FailureContext, Stamp } from '../conversation/format.ts';
import { Output } from './output.ts';
import { endOf, responseOf } from './response.ts';

/** The first choice of the turn. */
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
  const state = {
    ...endOf(choice.finish),
    output: output.end(choice.finish.unified),
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

/** The envelope of wire/common.md; this form has the type of the error at the top. */
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
  // Routing state is nobody's business when the fault is ours (wire/common.md, "Error envelope").
  if (about.metadata !== undefined && error.status !== 500) body[about.metadata.key] = about.metadata.value;
  return body;
}
