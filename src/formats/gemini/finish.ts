/** Maps the service's finish reasons to the conversation's, and back. */
import type { Finish, FinishReason } from '../conversation/conversation.ts';
import { unifiedWord, unknownEnd } from '../conversation/finish-words.ts';

/** A map, because an upstream may send a reason such as `constructor`. */
const REASONS = new Map<string, FinishReason>(
  Object.entries({
    STOP: 'stop',
    MAX_TOKENS: 'length',
    SAFETY: 'content_filter',
    RECITATION: 'content_filter',
    BLOCKLIST: 'content_filter',
    PROHIBITED_CONTENT: 'content_filter',
    SPII: 'content_filter',
    LANGUAGE: 'content_filter',
    MODEL_ARMOR: 'content_filter',
    IMAGE_SAFETY: 'content_filter',
    IMAGE_PROHIBITED_CONTENT: 'content_filter',
    IMAGE_RECITATION: 'content_filter',
    OTHER: 'error',
    IMAGE_OTHER: 'error',
    NO_IMAGE: 'error',
    MALFORMED_FUNCTION_CALL: 'error',
    MALFORMED_RESPONSE: 'error',
    UNEXPECTED_TOOL_CALL: 'error',
    TOO_MANY_TOOL_CALLS: 'error',
    MISSING_THOUGHT_SIGNATURE: 'error',
  }),
);

/** An unknown reason counts as a normal end if the reply has content. A normal end with calls becomes `tool_calls`. */
export function finishOf(native: string | undefined, calls: number, said: boolean): Finish {
  const word = native ?? 'STOP';
  const unified = REASONS.get(word) ?? REASONS.get(word.toUpperCase()) ?? unifiedWord(word) ?? unknownEnd(word, said);
  const ends = unified === 'stop' || unified === 'tool_calls';
  return { unified: ends ? (calls > 0 ? 'tool_calls' : 'stop') : unified, native: native ?? null };
}

/** The finish of a reply whose whole prompt was blocked. */
export function blockedFinish(reason: string | null, message: string | undefined): Finish {
  return {
    unified: 'content_filter',
    native: reason,
    ...(message !== undefined && { refusal: { category: null, explanation: message } }),
  };
}

/** The finish reason for a client: the service's own word, or the one for the unified reason. */
export function encodeFinish({ unified, native }: Finish): string {
  if (native !== null && REASONS.has(native)) return native;
  return WORDS[unified];
}

const WORDS: Readonly<Record<FinishReason, string>> = {
  stop: 'STOP',
  tool_calls: 'STOP',
  length: 'MAX_TOKENS',
  content_filter: 'SAFETY',
  error: 'OTHER',
};
