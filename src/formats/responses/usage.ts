/** Token counts of the responses form: `input_tokens` includes both caches, `output_tokens` the reasoning. */
import type { Usage } from '../conversation/conversation.ts';
import { countOf, fieldsOf, isFields } from '../conversation/fields.ts';

export function decodeUsage(value: unknown): Usage | undefined {
  if (!isFields(value) || typeof value['input_tokens'] !== 'number') return undefined;
  const details = fieldsOf(value['input_tokens_details']);
  const cacheRead = countOf(details['cached_tokens']);
  const cacheWrite5m = countOf(details['cache_write_tokens']);
  return {
    input: Math.max(countOf(value['input_tokens']) - cacheRead - cacheWrite5m, 0),
    cacheRead,
    cacheWrite5m,
    cacheWrite1h: 0,
    output: countOf(value['output_tokens']),
    reasoning: countOf(fieldsOf(value['output_tokens_details'])['reasoning_tokens']),
    native: { origin: 'responses', value },
  };
}
