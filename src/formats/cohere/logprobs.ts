/** Log probabilities of the cohere form: a piece of text with those of its tokens, whose own texts it does not tell. */
import type { Logprobs } from '../conversation/conversation.ts';
import { fieldsOf, isFields, listOf, textOf } from '../conversation/fields.ts';

/** One entry a piece, with the probability of all its tokens together; undefined when there are none. */
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
