import type { ProviderKind } from '../provider.ts';
import { chat } from './chat.ts';

/**
 * Moonshot: Kimi. Its thinking models require the thinking of earlier turns under its original name. Most are switched
 * by `thinking`; K3 always thinks and accepts an effort (platform.moonshot.ai/docs/guide).
 */
export const moonshot: ProviderKind = {
  ...chat,
  id: 'moonshot',
  name: 'Moonshot AI',
  baseUrl: 'https://api.moonshot.ai/v1',
  environment: 'MOONSHOT_API_KEY',
  author: 'moonshotai',
  bareModels: /^(kimi|moonshot)-/,
  service: { role: 'vendor', registryId: 'moonshotai', aliases: ['moonshotai'] },
  guide: {
    verifiedBy: 'recording',
    quirks: '`thinking` switch or effort, thinking is sent back, `partial`, usage in the choice',
  },
  dialect: {
    chat: {
      reasoning: 'thinking',
      reasoningRules: [
        {
          models: /^kimi-k[3-9]/,
          always: true,
          words: { none: 'low', minimal: 'low', medium: 'high', xhigh: 'max' },
        },
      ],
      reasoningReplay: 'reasoning_content',
      requiresThinking: { unasked: /thinking|^kimi-(k2\.[5-9]|k[3-9]|latest|for-coding)/ },
      prefill: 'partial',
    },
  },
};
