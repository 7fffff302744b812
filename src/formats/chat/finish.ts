/** Finish words of chat completions and of the services that speak them in their own way. */
import type { Finish, FinishReason } from '../conversation/conversation.ts';

/** In lower case with underscores. A map, not an object: an upstream may say `constructor`. */
const WORDS = new Map<string, FinishReason>(
  Object.entries({
    stop: 'stop',
    stopped: 'stop',
    eos: 'stop',
    eos_token: 'stop',
    end: 'stop',
    end_turn: 'stop',
    complete: 'stop',
    completed: 'stop',
    stop_sequence: 'stop',
    length: 'length',
    max_length: 'length',
    max_tokens: 'length',
    max_output_tokens: 'length',
    max_new_tokens: 'length',
    token_limit: 'length',
    model_length: 'length',
    model_context_window_exceeded: 'length',
    tool_calls: 'tool_calls',
    tool_call: 'tool_calls',
    tool_use: 'tool_calls',
    function_call: 'tool_calls',
    content_filter: 'content_filter',
    content_filtered: 'content_filter',
    error_toxic: 'content_filter',
    guardrail_intervened: 'content_filter',
    sensitive: 'content_filter',
    safety: 'content_filter',
    recitation: 'content_filter',
    blocklist: 'content_filter',
    prohibited_content: 'content_filter',
    spii: 'content_filter',
    refusal: 'content_filter',
    error: 'error',
    network_error: 'error',
  }),
);

/** The unified word for a vendor's, in whatever case and with whatever joints it is written; undefined for an unknown one. */
export function unifiedWord(native: string | null): FinishReason | undefined {
  if (native === null) return undefined;
  return WORDS.get(native) ?? WORDS.get(native.toLowerCase().replaceAll(/[- ]/g, '_'));
}

/** The words that the form itself knows; `function_call` ends an answer that was asked for with the older `functions`. */
const STANDARD: ReadonlySet<unknown> = new Set(['stop', 'length', 'tool_calls', 'function_call', 'content_filter']);

/**
 * Unifies an upstream's word. No word or an empty one means whatever fits what came, and so does an unknown one behind
 * some content; alone it says that something went wrong. Calls end as `tool_calls` even when the word is `stop` (forced
 * calls), and never without a call (bug 27).
 */
export function readFinish(
  native: string | null,
  came: { calls: boolean; content: boolean },
  stopReason: unknown,
): Finish {
  const word = unifiedWord(native) ?? (native === null || came.calls || came.content ? 'stop' : 'error');
  const unified = word === 'stop' || word === 'tool_calls' ? (came.calls ? 'tool_calls' : 'stop') : word;
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
  return unifiedWord(native) === 'error';
}
