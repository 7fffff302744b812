/** Finish words of chat completions and of the services that speak them in their own way. */
import type { Finish } from '../conversation/conversation.ts';
import { unifiedWord, unknownEnd } from '../conversation/finish-words.ts';

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
  const word = unifiedWord(native) ?? unknownEnd(native, came.calls || came.content);
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
