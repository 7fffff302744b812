/** Maps finish reasons of the cohere format to the unified finish. */
import type { Finish, FinishReason } from '../conversation/conversation.ts';
import { textOrUndefined } from '../conversation/fields.ts';
import { unifiedWord, unknownEnd } from '../conversation/finish-words.ts';

/** A map, because an upstream may send a reason such as `constructor`. */
const UNIFIED = new Map<unknown, FinishReason>(
  Object.entries({
    COMPLETE: 'stop',
    STOP_SEQUENCE: 'stop',
    MAX_TOKENS: 'length',
    TOOL_CALL: 'tool_calls',
    ERROR_TOXIC: 'content_filter',
    ERROR: 'error',
    ERROR_LIMIT: 'error',
    TIMEOUT: 'error',
  }),
);

/**
 * @param calls whether the reply holds a call: `TOOL_CALL` without one is a plain stop, `COMPLETE` with one is
 * `tool_calls`
 * @param content whether it holds anything
 */
export function decodeFinish(reason: unknown, calls: boolean, content: boolean): Finish {
  const native = textOrUndefined(reason) ?? null;
  let unified = UNIFIED.get(native) ?? unifiedWord(native) ?? unknownEnd(native, content);
  if (unified === 'tool_calls' && !calls) unified = 'stop';
  if (unified === 'stop' && calls && native !== 'STOP_SEQUENCE') unified = 'tool_calls';
  return { unified, native };
}
