/** Usage takes several columns: the counts that the totals add up, and the others as JSON. */
import type { Usage } from '../formats/conversation/conversation.ts';
import type { Member } from './column.ts';

type OptionalCount = {
  [Name in keyof Usage]-?: undefined extends Usage[Name]
    ? Exclude<Usage[Name], undefined> extends number
      ? Name
      : never
    : never;
}[keyof Usage];

/** Every optional count, and whether the row keeps it. */
const KEPT: Readonly<Record<OptionalCount, boolean>> = {
  inputAudio: true,
  inputImage: true,
  outputAudio: true,
  outputImage: true,
  acceptedPrediction: true,
  rejectedPrediction: true,
  webSearches: true,
  webFetches: true,
  searchUnits: true,
  toolCallsRequested: false,
  toolCallsExecuted: false,
  outputImages: false,
  outputMegapixels: false,
  inputCharacters: true,
  inputSeconds: true,
  outputSeconds: true,
};

const USAGE_DETAILS = (Object.keys(KEPT) as OptionalCount[]).filter((name) => KEPT[name]);

interface UsageColumns {
  input_tokens: number | undefined;
  cache_read_tokens: number | undefined;
  cache_write_5m_tokens: number | undefined;
  cache_write_1h_tokens: number | undefined;
  output_tokens: number | undefined;
  reasoning_tokens: number | undefined;
  usage_details: Record<string, number> | undefined;
}

export const USAGE_COLUMNS: Member<Usage | null, UsageColumns> = {
  columns: {
    input_tokens: 'bigint',
    cache_read_tokens: 'bigint',
    cache_write_5m_tokens: 'bigint',
    cache_write_1h_tokens: 'bigint',
    output_tokens: 'bigint',
    reasoning_tokens: 'bigint',
    usage_details: 'jsonb',
  },
  encode: (usage) => ({
    input_tokens: usage === null ? undefined : encodeCount(usage.input),
    cache_read_tokens: usage === null ? undefined : encodeCount(usage.cacheRead),
    cache_write_5m_tokens: usage === null ? undefined : encodeCount(usage.cacheWrite5m),
    cache_write_1h_tokens: usage === null ? undefined : encodeCount(usage.cacheWrite1h),
    output_tokens: usage === null ? undefined : encodeCount(usage.output),
    reasoning_tokens: usage === null ? undefined : encodeCount(usage.reasoning),
    usage_details: usage === null ? undefined : encodeDetails(usage),
  }),
  decode(stored) {
    if (stored.input_tokens === null || stored.input_tokens === undefined) return null;
    return {
      input: Number(stored.input_tokens),
      cacheRead: Number(stored.cache_read_tokens),
      cacheWrite5m: Number(stored.cache_write_5m_tokens),
      cacheWrite1h: Number(stored.cache_write_1h_tokens),
      output: Number(stored.output_tokens),
      reasoning: Number(stored.reasoning_tokens),
      ...(stored.usage_details as Partial<Usage> | null | undefined),
    };
  },
  empty: null,
  wire: {},
  toWire: (usage) => usage,
};

/** Upstreams may report any number; the column requires a non-negative integer. */
export function encodeCount(tokens: number): number {
  if (!(tokens > 0)) return 0;
  return tokens < Number.MAX_SAFE_INTEGER ? Math.round(tokens) : Number.MAX_SAFE_INTEGER;
}

export function encodeDetails(usage: Usage): Record<string, number> | undefined {
  let details: Record<string, number> | undefined;
  for (const name of USAGE_DETAILS) {
    const value = usage[name];
    if (value === undefined) continue;
    details ??= {};
    details[name] = encodeCount(value);
  }
  return details;
}
