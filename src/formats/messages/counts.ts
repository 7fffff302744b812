/** Token counts of one usage record: of a complete answer, or of one call in it. */
import type { Usage } from '../conversation/conversation.ts';
import { countOf, type Fields, fieldsOf } from '../conversation/fields.ts';

export function countsOf(value: Fields): Usage {
  const written = fieldsOf(value['cache_creation']);
  const cacheWrite1h = countOf(written['ephemeral_1h_input_tokens']);
  const split = cacheWrite1h + countOf(written['ephemeral_5m_input_tokens']);
  // At its end a stream repeats only the sum; the hour part is known from the start, and the rest is five minutes.
  const cacheWrite = Math.max(countOf(value['cache_creation_input_tokens']), split);
  return {
    input: countOf(value['input_tokens']),
    cacheRead: countOf(value['cache_read_input_tokens']),
    cacheWrite5m: cacheWrite - cacheWrite1h,
    cacheWrite1h,
    output: countOf(value['output_tokens']),
    reasoning: countOf(fieldsOf(value['output_tokens_details'])['thinking_tokens']),
  };
}
