/** Finish words of chat completions and of the services that speak them in their own way. */
import type { Finish, FinishReason } from '../conversation/conversation.ts';

/** A map, not an object: an upstream may say `constructor`. */
const WORDS = new Map<unknown, FinishReason>(
  Object.entries({
    stop: 'stop',
    eos: 'stop',
    eos_token: 'stop',
    end_turn: 'stop',
    stop_sequence: 'stop',
    length: 'length',
    max_tokens: 'length',
    model_length: 'length',
    model_context_window_exceeded: 'length',
    tool_calls: 'tool_calls',
    tool_use: 'tool_calls',
    function_call: 'tool_calls',
    content_filter: 'content_filter',
    sensitive: 'content_filter',
    safety: 'content_filter',
    refusal: 'content_filter',
    error: 'error',
    network_error: 'error',
  }),
);

/** The words that the form itself knows; `function_call` ends an answer that was asked for with the older `functions`. */
const STANDARD: ReadonlySet<unknown> = new Set(['stop', 'length', 'tool_calls', 'function_call', 'content_filter']);

/**
 * Unifies an upstream's word. No word, an empty or an unknown one means whatever fits what came; calls end as
 * `tool_calls` even when the word is `stop` (forced calls), and never without a call (bug 27).
 */
export function readFinish(native: string | null, hasCalls: boolean, stopReason: unknown): Finish {
  const word = WORDS.get(native);
  const unified =
    word === undefined || word === 'stop' || word === 'tool_calls' ? (hasCalls ? 'tool_calls' : 'stop') : word;
  const finish: Finish = { unified, native };
  // vLLM names the matched stop text in `stop_reason`; a number there is a token id.
  if (typeof stopReason === 'string' && stopReason !== '' && unified === 'stop') finish.stopSequence = stopReason;
  return finish;
}

/** The word that a client sees in a relayed answer: the upstream's own where it is a standard one that fits. */
export function shownFinish(finish: Finish): string {
  const { native, unified } = finish;
  const callsWithoutCalls = (native === 'tool_calls' || native === 'function_call') && unified !== 'tool_calls';
  return STANDARD.has(native) && !callsWithoutCalls ? native! : unified;
}

export function isErrorWord(native: string | null): boolean {
  return WORDS.get(native) === 'error';
}
