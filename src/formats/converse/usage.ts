/**
 * Token counts of the converse format: `inputTokens` excludes both caches. Reasoning is part of the output and not
 * reported separately.
 */
import type { Usage } from '../conversation/conversation.ts';
import { countOf, fieldsOf, isFields, isImpossibleCount, listOf } from '../conversation/fields.ts';

/** Undefined if the record has no output count. */
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
