/** How a response says that it has ended. */
import type { Finish } from '../conversation/conversation.ts';
import { type Fields, fieldsOf, textOrUndefined } from '../conversation/fields.ts';

/** @param calls whether the answer holds a call of a client's tool */
export function decodeFinish(response: Fields, calls: boolean): Finish {
  const status = textOrUndefined(response['status']) ?? null;
  const reason = textOrUndefined(fieldsOf(response['incomplete_details'])['reason']);
  const native = reason ?? status;
  if (status === 'incomplete') return { unified: reason === 'content_filter' ? 'content_filter' : 'length', native };
  return { unified: calls ? 'tool_calls' : 'stop', native };
}
