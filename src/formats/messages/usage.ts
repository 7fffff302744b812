/**
 * Token counts of the messages form (wire/messages.md, MsgUsage). `input_tokens` excludes both caches; thinking is a part
 * of `output_tokens`. `iterations` (the calls behind a compaction, an advisor or a fallback) stay in the native record:
 * the top-level counts are what the upstream names as the answer's own.
 */
import type { Usage } from '../conversation/conversation.ts';
import { countOf, type Fields, fieldsOf, isFields, isImpossibleCount } from '../conversation/fields.ts';
import { addServerToolCounts, serverToolCounts } from '../conversation/server-tool-counts.ts';

/** Undefined when the record names no output: such a record says nothing yet. */
export function decodeUsage(value: unknown): Usage | undefined {
  if (!isFields(value) || typeof value['output_tokens'] !== 'number') return undefined;
  if (isImpossibleCount(value['input_tokens']) || isImpossibleCount(value['output_tokens'])) return undefined;
  const written = fieldsOf(value['cache_creation']);
  const cacheWrite1h = countOf(written['ephemeral_1h_input_tokens']);
  const split = cacheWrite1h + countOf(written['ephemeral_5m_input_tokens']);
  // A stream repeats only the sum at its end; the split of its start holds for the hour, the rest is five minutes.
  const cacheWrite = Math.max(countOf(value['cache_creation_input_tokens']), split);
  const usage: Usage = {
    input: countOf(value['input_tokens']),
    cacheRead: countOf(value['cache_read_input_tokens']),
    cacheWrite5m: cacheWrite - cacheWrite1h,
    cacheWrite1h,
    output: countOf(value['output_tokens']),
    reasoning: countOf(fieldsOf(value['output_tokens_details'])['thinking_tokens']),
    native: { origin: 'messages', value },
  };
  const served = value['server_tool_use'];
  if (isFields(served)) {
    if ('web_search_requests' in served) usage.webSearches = countOf(served['web_search_requests']);
    const { web_search_requests: _searches, ...calls } = served;
    addServerToolCounts(usage, calls);
    if ('web_fetch_requests' in served) usage.webFetches = countOf(served['web_fetch_requests']);
  }
  return usage;
}

const READ = ['input_tokens', 'cache_creation_input_tokens', 'cache_read_input_tokens', 'cache_creation'];

/**
 * A later record of a stream laid over the earlier one: what it names (not null) replaces what was known. A prompt of
 * nothing replaces none: services that count it at the start fill the end with zeros.
 */
export function mergeUsage(earlier: Fields, later: unknown): Fields {
  const named = fieldsOf(later);
  const merged = { ...earlier };
  const empty = isUnread(named) && !isUnread(earlier);
  for (const [key, value] of Object.entries(named)) {
    if (value !== null && !(empty && READ.includes(key))) merged[key] = value;
  }
  return merged;
}

function isUnread(record: Fields): boolean {
  return READ.every((key) => countOf(record[key]) === 0);
}

const NO_USAGE: Usage = { input: 0, cacheRead: 0, cacheWrite5m: 0, cacheWrite1h: 0, output: 0, reasoning: 0 };

/** The whole record with every required key; fields of a native record that have no name here are kept. */
export function encodeUsage(usage: Usage = NO_USAGE, serviceTier?: string | null): Fields {
  const native = usage.native?.origin === 'messages' ? usage.native.value : {};
  return {
    inference_geo: null,
    ...native,
    input_tokens: usage.input,
    output_tokens: usage.output,
    cache_creation_input_tokens: usage.cacheWrite5m + usage.cacheWrite1h,
    cache_read_input_tokens: usage.cacheRead,
    cache_creation: {
      ephemeral_5m_input_tokens: usage.cacheWrite5m,
      ephemeral_1h_input_tokens: usage.cacheWrite1h,
    },
    output_tokens_details: { ...fieldsOf(native['output_tokens_details']), thinking_tokens: usage.reasoning },
    server_tool_use: {
      ...fieldsOf(native['server_tool_use']),
      ...serverToolCounts(usage),
      web_search_requests: usage.webSearches ?? 0,
      web_fetch_requests: usage.webFetches ?? 0,
    },
    service_tier: native['service_tier'] ?? tierOf(serviceTier),
  };
}

function tierOf(tier: string | null | undefined): string | null {
  if (tier === 'default') return 'standard';
  return tier === 'standard' || tier === 'priority' || tier === 'batch' ? tier : null;
}
