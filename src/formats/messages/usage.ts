/**
 * Token counts of the messages format. `input_tokens` excludes both caches; thinking is part of `output_tokens`. The
 * record's own counts exclude compactions and advisors, so our usage is the sum of the calls in `iterations`; clients
 * of this format see the record's own counts.
 */
import type { Usage } from '../conversation/conversation.ts';
import { countOf, type Fields, fieldsOf, isFields, isImpossibleCount } from '../conversation/fields.ts';
import { addServerToolCounts, serverToolCounts } from '../conversation/server-tool-counts.ts';
import { countsOf } from './counts.ts';
import { billedCalls } from './iterations.ts';

/** Undefined when the record has no output count: it is not meaningful yet. */
export function decodeUsage(value: unknown): Usage | undefined {
  const own = ownUsage(value);
  if (own === undefined) return undefined;
  const record = fieldsOf(value);
  const calls = Array.isArray(record['iterations']) ? billedCalls(record['iterations'], own) : undefined;
  const usage: Usage = { ...own, native: { origin: 'messages', value: record } };
  if (calls !== undefined) {
    for (const name of COUNTS) usage[name] = calls.reduce((sum, call) => sum + call.usage[name], 0);
    usage.calls = calls;
  }
  const served = record['server_tool_use'];
  if (isFields(served)) {
    if ('web_search_requests' in served) usage.webSearches = countOf(served['web_search_requests']);
    const { web_search_requests: _searches, ...toolCalls } = served;
    addServerToolCounts(usage, toolCalls);
    if ('web_fetch_requests' in served) usage.webFetches = countOf(served['web_fetch_requests']);
  }
  return usage;
}

const COUNTS = ['input', 'cacheRead', 'cacheWrite5m', 'cacheWrite1h', 'output', 'reasoning'] as const;

/** The record's own counts. */
function ownUsage(value: unknown): Usage | undefined {
  if (!isFields(value) || typeof value['output_tokens'] !== 'number') return undefined;
  if (isImpossibleCount(value['input_tokens']) || isImpossibleCount(value['output_tokens'])) return undefined;
  return countsOf(value);
}

const READ = ['input_tokens', 'cache_creation_input_tokens', 'cache_read_input_tokens', 'cache_creation'];

/**
 * Merges a later record of a stream into the earlier one: its non-null members win. A zero prompt count does not
 * replace a known one: services that count the prompt at the start send zeros at the end.
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

/** The complete record with every required member; unknown members of the native record are kept. */
export function encodeUsage(usage: Usage = NO_USAGE, serviceTier?: string | null): Fields {
  const native = usage.native?.origin === 'messages' ? usage.native.value : {};
  const shown = (usage.calls && ownUsage(native)) ?? usage;
  return {
    inference_geo: null,
    ...native,
    input_tokens: shown.input,
    output_tokens: shown.output,
    cache_creation_input_tokens: shown.cacheWrite5m + shown.cacheWrite1h,
    cache_read_input_tokens: shown.cacheRead,
    cache_creation: {
      ephemeral_5m_input_tokens: shown.cacheWrite5m,
      ephemeral_1h_input_tokens: shown.cacheWrite1h,
    },
    output_tokens_details: { ...fieldsOf(native['output_tokens_details']), thinking_tokens: shown.reasoning },
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
