/** The usage of a batch: counts of its items, which add up, and their reply. */
import { usdFromNano } from '../../base/money.ts';
import type { Cost } from '../../formats/conversation/format.ts';
import type { Generation } from '../../spend/index.ts';
import type { BatchEndpoint } from '../batch.ts';

/** Service tiers that upstreams report; others count as `other`. */
const TIERS = ['default', 'standard', 'flex', 'priority', 'fast', 'ultrafast', 'scale', 'batch'] as const;
type Tier = (typeof TIERS)[number] | 'other' | 'none';

type UsageCount =
  | 'prompt_tokens'
  | 'completion_tokens'
  | 'reasoning_tokens'
  | 'completion_audio_tokens'
  | 'completion_image_tokens'
  | 'cached_tokens'
  | 'cache_write_5m_tokens'
  | 'cache_write_1h_tokens'
  | 'prompt_audio_tokens'
  | 'web_search_requests'
  | 'tool_calls_requested'
  | 'tool_calls_executed'
  | 'cost_nano'
  | 'byok_nano'
  | 'prompt_nano'
  | 'completion_nano'
  | 'byok_items'
  /** Items of a service tier. */
  | `tier_${Tier}`;

/** Of one item, or summed over the items of a batch; absent counts are zero. Money is nano-dollars. */
export type UsageCounts = Partial<Readonly<Record<UsageCount, number>>>;

/** The counts of one item; null if it did not get as far as a row of the ledger. */
export function usageOf({ row, cost }: { row: Generation | undefined; cost: Cost | undefined }): UsageCounts | null {
  if (row === undefined) return null;
  const { usage, costNano, byokNano, isByok, serviceTier } = row;
  const counts: UsageCounts = {
    cost_nano: Number(costNano),
    byok_nano: Number(byokNano),
    byok_items: isByok ? 1 : 0,
    ...(cost !== undefined && {
      prompt_nano: nanoOf(cost.cost_details.upstream_inference_prompt_cost),
      completion_nano: nanoOf(cost.cost_details.upstream_inference_completions_cost),
    }),
    ...(usage !== null && {
      prompt_tokens: usage.input + usage.cacheRead + usage.cacheWrite5m + usage.cacheWrite1h,
      completion_tokens: usage.output,
      reasoning_tokens: usage.reasoning,
      cached_tokens: usage.cacheRead,
      cache_write_5m_tokens: usage.cacheWrite5m,
      cache_write_1h_tokens: usage.cacheWrite1h,
      prompt_audio_tokens: usage.inputAudio ?? 0,
      completion_audio_tokens: usage.outputAudio ?? 0,
      completion_image_tokens: usage.outputImage ?? 0,
      web_search_requests: usage.webSearches ?? 0,
      tool_calls_requested: usage.toolCallsRequested ?? 0,
      tool_calls_executed: usage.toolCallsExecuted ?? 0,
      [`tier_${tierOf(serviceTier)}`]: 1,
    }),
  };
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => count !== 0));
}

/** Exact: the dollars were made of whole nano-dollars. */
function nanoOf(usd: number): number {
  return Math.round(usd * 1e9);
}

function tierOf(reported: string | null): Tier {
  if (reported === null) return 'none';
  return TIERS.find((tier) => tier === reported) ?? 'other';
}

export function usageReply(counts: UsageCounts, endpoint: BatchEndpoint) {
  const of = (name: UsageCount) => counts[name] ?? 0;
  const usd = (name: UsageCount) => usdFromNano(BigInt(of(name)));
  const writes = of('cache_write_5m_tokens') + of('cache_write_1h_tokens');
  const cacheCreation = {
    ephemeral_5m_input_tokens: of('cache_write_5m_tokens'),
    ephemeral_1h_input_tokens: of('cache_write_1h_tokens'),
  };
  const tier = commonTier(counts);
  return {
    prompt_tokens: of('prompt_tokens'),
    completion_tokens: of('completion_tokens'),
    total_tokens: of('prompt_tokens') + of('completion_tokens'),
    prompt_tokens_details: {
      cached_tokens: of('cached_tokens'),
      cache_write_tokens: writes,
      audio_tokens: of('prompt_audio_tokens'),
      // Batches carry neither.
      file_tokens: 0,
      video_tokens: 0,
    },
    completion_tokens_details: {
      reasoning_tokens: of('reasoning_tokens'),
      audio_tokens: of('completion_audio_tokens'),
      image_tokens: of('completion_image_tokens'),
    },
    cache_creation: cacheCreation,
    server_tool_use: {
      web_search_requests: of('web_search_requests'),
      tool_calls_requested: of('tool_calls_requested'),
      tool_calls_executed: of('tool_calls_executed'),
    },
    cost: usd('cost_nano'),
    cost_details: {
      upstream_inference_cost: of('byok_items') > 0 ? usd('byok_nano') : null,
      upstream_inference_prompt_cost: usd('prompt_nano'),
      upstream_inference_completions_cost: usd('completion_nano'),
    },
    is_byok: of('byok_items') > 0,
    service_tier: tier,
    ...(endpoint === '/v1/messages' && {
      speed: tier === 'fast' || tier === 'priority' ? 'fast' : 'standard',
      // The calls of all items as one.
      iterations: [
        {
          type: 'message',
          input_tokens: of('prompt_tokens') - of('cached_tokens') - writes,
          output_tokens: of('completion_tokens'),
          cache_read_input_tokens: of('cached_tokens'),
          cache_creation_input_tokens: writes,
          cache_creation: cacheCreation,
        },
      ],
    }),
  };
}

/** The tier of all items; null if they differ, or if none was reported. */
function commonTier(counts: UsageCounts): string | null {
  const [tier, ...others] = (['none', 'other', ...TIERS] as const).filter((each) => counts[`tier_${each}`]);
  return tier === undefined || others.length > 0 || tier === 'none' || tier === 'other' ? null : tier;
}
