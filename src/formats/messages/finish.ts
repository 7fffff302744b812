/** Converts between stop reasons of the messages format and the unified finish. */
import type { Finish, FinishReason } from '../conversation/conversation.ts';
import { type Fields, isFields, textOrUndefined } from '../conversation/fields.ts';
import { unifiedWord, unknownEnd } from '../conversation/finish-words.ts';

/** A map, not an object: an upstream may send `constructor`. */
const UNIFIED = new Map<unknown, FinishReason>(
  Object.entries({
    end_turn: 'stop',
    stop_sequence: 'stop',
    pause_turn: 'stop',
    compaction: 'stop',
    max_tokens: 'length',
    model_context_window_exceeded: 'length',
    tool_use: 'tool_calls',
    refusal: 'content_filter',
  }),
);

const STOP_REASON: Record<FinishReason, string> = {
  stop: 'end_turn',
  length: 'max_tokens',
  tool_calls: 'tool_use',
  content_filter: 'refusal',
  error: 'end_turn',
};

/**
 * @param source an object with `stop_reason`, `stop_sequence` and `stop_details`
 * @param calls whether the answer calls a client tool: `tool_use` without a call becomes a plain stop, and `end_turn`
 * with one (sent by some compatible servers) becomes a call
 * @param content whether the answer has any content
 */
export function decodeFinish(source: Fields, calls: boolean, content: boolean): Finish {
  const native = textOrUndefined(source['stop_reason']) ?? null;
  let unified = UNIFIED.get(native) ?? unifiedWord(native) ?? unknownEnd(native, content);
  if (unified === 'tool_calls' && !calls) unified = 'stop';
  if (unified === 'stop' && calls && (native === 'end_turn' || !UNIFIED.has(native))) unified = 'tool_calls';
  const finish: Finish = { unified, native };
  if (native === 'pause_turn') finish.paused = true;
  const sequence = textOrUndefined(source['stop_sequence']);
  if (sequence !== undefined) finish.stopSequence = sequence;
  const details = source['stop_details'];
  if (isFields(details)) {
    finish.refusal = {
      category: textOrUndefined(details['category']) ?? null,
      explanation: textOrUndefined(details['explanation']) ?? null,
    };
  }
  return finish;
}

/**
 * The three stop members. A stop sequence is named only if the upstream named it; a refusal sent as text ends as
 * `refusal`; answers with calls end as `tool_use` even if the upstream reported a plain stop.
 */
export function encodeFinish(finish: Finish, answer: { calls: boolean; refused: boolean }): Fields {
  const reason = stopReason(finish, answer);
  return {
    stop_reason: reason,
    stop_sequence: reason === 'stop_sequence' ? finish.stopSequence : null,
    stop_details:
      reason === 'refusal' || finish.refusal !== undefined
        ? { type: 'refusal', ...(finish.refusal ?? { category: null, explanation: null }) }
        : null,
  };
}

/** The stop reason of a relayed answer: the upstream's own, unless it contradicts the presence or absence of calls. */
export function relayedReason({ unified, native }: Finish): string | null {
  if (native === 'tool_use' && unified === 'stop') return 'end_turn';
  if (native === 'end_turn' && unified === 'tool_calls') return 'tool_use';
  // A word of another format, or in capitals; unknown words may be newer ones of this format.
  return UNIFIED.has(native) || unifiedWord(native) === undefined ? native : STOP_REASON[unified];
}

function stopReason(finish: Finish, answer: { calls: boolean; refused: boolean }): string {
  const { unified, native } = finish;
  if (typeof finish.stopSequence === 'string' && unified === 'stop') return 'stop_sequence';
  if (unified === 'tool_calls' && !answer.calls) return 'end_turn';
  if (unified === 'stop' && answer.refused) return 'refusal';
  // A word of this format is kept, except `stop_sequence` without its text, which would be a guess.
  if (native !== null && native !== 'stop_sequence' && UNIFIED.get(native) === unified) return native;
  return unified === 'stop' && answer.calls ? 'tool_use' : STOP_REASON[unified];
}
