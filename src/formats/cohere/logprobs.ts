/**
 * Log probabilities of the cohere format: a piece of text with the values of its tokens, but not the tokens' own texts.
 */
import type { Logprobs } from '../conversation/conversation.ts';
import { fieldsOf, isFields, listOf, textOf } from '../conversation/fields.ts';

/** One entry per piece, with the joint log probability of its tokens; undefined if there are none. */
export function decodeLogprobs(value: unknown): Logprobs | undefined {
  const pieces = (Array.isArray(value) ? value : [value]).filter(isFields);
  const content = pieces.flatMap((piece) => {
    const { text, logprobs } = fieldsOf(piece);
    const numbers = listOf(logprobs).filter((one): one is number => typeof one === 'number');
    if (numbers.length === 0) return [];
    const token = textOf(text);
    const logprob = numbers.reduce((sum, one) => sum + one, 0);
    return [{ token, logprob, bytes: [...Buffer.from(token, 'utf8')], top_logprobs: [] }];
  });
  return content.length === 0 ? undefined : { content };
}
