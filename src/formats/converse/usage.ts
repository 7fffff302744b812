/** Token counts of the converse form: `inputTokens` excludes both caches. Thinking is counted as output and not told apart. */
import type { Usage } from '../conversation/conversation.ts';
import { countOf, fieldsOf, isFields, isImpossibleCount, listOf } from '../conversation/fields.ts';

/** Undefined when the record names no output: such a record says nothing. */
export function decodeUsage(value: unknown): Usage | undefined {
  if (!isFields(value) || typeof value['outputTokens'] !== 'number') return undefined;
  if (isImpossibleCount(value['inputTokens']) || isImpossibleCount(value['outputTokens'])) return undefined;
  let cacheWrite1h = 0;
  for (const detail of listOf(value['cacheDetails'])) {
    const { ttl, inputTokens } = fieldsOf(detail);
    if (ttl === '1h') cacheWrite1h += countOf(inputTokens);
  }
  const written = countOf(value['cacheWriteInputTokens'] ?? value['cacheWriteInputTokenCount']);
  cacheWrite1h = Math.min(cacheWrite1h, written);
  return {
    input: countOf(value['inputTokens']),
    cacheRead: countOf(value['cacheReadInputTokens'] ?? value['cacheReadInputTokenCount']),
    cacheWrite5m: written - cacheWrite1h,
    cacheWrite1h,
    output: countOf(value['outputTokens']),
    reasoning: 0,
    native: { origin: 'converse', value },
  };
}
