/** Maps stop reasons of the converse format to the unified finish. */
import type { Finish, FinishReason } from '../conversation/conversation.ts';
import { fieldsOf, textOrUndefined } from '../conversation/fields.ts';
import { unifiedWord, unknownEnd } from '../conversation/finish-words.ts';

/** A map, because an upstream may send a reason such as `constructor`. */
const UNIFIED = new Map<unknown, FinishReason>(
  Object.entries({
    end_turn: 'stop',
    stop_sequence: 'stop',
    max_tokens: 'length',
    model_context_window_exceeded: 'length',
    tool_use: 'tool_calls',
    guardrail_intervened: 'content_filter',
    content_filtered: 'content_filter',
    malformed_model_output: 'error',
    malformed_tool_use: 'error',
  }),
);

/**
 * @param reason `stopReason` @param fields `additionalModelResponseFields`, which may name the matched stop sequence
 * @param calls whether the reply holds a client tool call; `tool_use` without one is a plain stop
 * @param content whether it holds anything
 */
export function decodeFinish(reason: unknown, fields: unknown, calls: boolean, content: boolean): Finish {
  const native = textOrUndefined(reason) ?? null;
  let unified = UNIFIED.get(native) ?? unifiedWord(native) ?? unknownEnd(native, content);
  if (unified === 'tool_calls' && !calls) unified = 'stop';
  if (unified === 'stop' && calls && native !== 'stop_sequence') unified = 'tool_calls';
  const sequence = textOrUndefined(fieldsOf(fields)['stop_sequence']);
  return { unified, native, ...(sequence !== undefined && { stopSequence: sequence }) };
}
