/** Finish reasons of chat completions and of compatible services. */
import type { Finish } from '../conversation/conversation.ts';
import { unifiedWord, unknownEnd } from '../conversation/finish-words.ts';

/** The format's own words; `function_call` ends an answer to a request with the legacy `functions`. */
const STANDARD: ReadonlySet<unknown> = new Set(['stop', 'length', 'tool_calls', 'function_call', 'content_filter']);

/**
 * Maps an upstream's finish reason. A missing, empty, or unknown reason after content is inferred from the content; an
 * unknown reason alone is an error. Answers with calls end as `tool_calls` even when the word is `stop` (forced calls),
 * and answers without a call never do (mastra-ai/mastra#14187).
 */
export function readFinish(
  native: string | null,
  came: { calls: boolean; content: boolean },
  stopReason: unknown,
): Finish {
  const word = unifiedWord(native) ?? unknownEnd(native, came.calls || came.content);
  const unified = word === 'stop' || word === 'tool_calls' ? (came.calls ? 'tool_calls' : 'stop') : word;
  const finish: Finish = { unified, native };
  // vLLM puts the matched stop sequence in `stop_reason`; a number there is a token id.
  if (typeof stopReason === 'string' && stopReason !== '' && unified === 'stop') finish.stopSequence = stopReason;
  return finish;
}

/** The word shown to a client of a relayed answer: the upstream's own where it is standard and fits. */
export function shownFinish(finish: Finish): string {
  const { native, unified } = finish;
  const callsWithoutCalls = (native === 'tool_calls' || native === 'function_call') && unified !== 'tool_calls';
  return STANDARD.has(native) && !callsWithoutCalls ? native! : unified;
}

export function isErrorWord(native: string | null): boolean {
  return unifiedWord(native) === 'error';
}
