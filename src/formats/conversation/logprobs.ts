/** Log probabilities with every member that clients require. Services leave some out, above all `bytes`. */
import type { Logprobs } from './conversation.ts';
import { type Fields, fieldsOf, listOf, textOf } from './fields.ts';

/** @param noBytes for tokens that are no text of their own; the formats differ in it */
export function completeTokens(entries: readonly unknown[], noBytes: null | readonly number[]): Fields[] {
  return entries.map((entry) => ({
    ...completeToken(fieldsOf(entry), noBytes),
    top_logprobs: listOf(fieldsOf(entry)['top_logprobs']).map((top) => completeToken(fieldsOf(top), noBytes)),
  }));
}

function completeToken(token: Fields, noBytes: null | readonly number[]): Fields {
  const { bytes = [...Buffer.from(textOf(token['token']))] } = token;
  return { ...token, bytes: bytes ?? noBytes };
}

/** As the chat format has them. */
export function completeLogprobs({ content, refusal = null }: Logprobs): Required<Logprobs> {
  return { content: content && completeTokens(content, null), refusal: refusal && completeTokens(refusal, null) };
}
