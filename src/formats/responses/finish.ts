/** Maps the status of a response to a finish reason. */
import type { Finish } from '../conversation/conversation.ts';
import { type Fields, fieldsOf, textOrUndefined } from '../conversation/fields.ts';
import { unifiedWord, unknownEnd } from '../conversation/finish-words.ts';

/** @param calls whether the reply holds a client tool call @param content whether it holds anything */
export function decodeFinish(response: Fields, calls: boolean, content: boolean): Finish {
  const status = textOrUndefined(response['status']) ?? null;
  const reason = textOrUndefined(fieldsOf(response['incomplete_details'])['reason']);
  const native = reason ?? status;
  if (status?.toLowerCase() === 'incomplete') {
    return { unified: unifiedWord(reason ?? null) === 'content_filter' ? 'content_filter' : 'length', native };
  }
  const unified = unifiedWord(status) ?? unknownEnd(status, content);
  return { unified: unified === 'error' ? unified : calls ? 'tool_calls' : 'stop', native };
}
