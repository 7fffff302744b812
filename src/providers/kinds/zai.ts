import type { ProviderKind } from '../provider.ts';
import { chat } from './chat.ts';

/**
 * Z.AI: GLM. It requires the thinking of earlier turns between tool calls
 * (docs.z.ai/guides/capabilities/thinking-mode). `thinking` switches thinking; the newest models also accept an effort.
 * Output formats are text and JSON only, and the end user is in `user_id`.
 */
export const zai: ProviderKind = {
  ...chat,
  id: 'zai',
  name: 'Z.AI',
  baseUrl: 'https://api.z.ai/api/paas/v4',
  environment: 'ZAI_API_KEY',
  author: 'z-ai',
  bareModels: /^glm-/,
  service: { role: 'vendor', registryId: 'zai', aliases: ['z-ai'] },
  guide: {
    verifiedBy: 'recording',
    quirks: '`thinking` switch, thinking is sent back, `user_id`, no response schemas',
  },
  dialect: {
    chat: {
      reasoning: 'thinking',
      reasoningRules: [{ models: /^glm-5\.[2-9]/, words: { minimal: 'low', medium: 'high', xhigh: 'max' } }],
      reasoningReplay: 'reasoning_content',
      requiresThinking: { unasked: /^glm-(4\.[5-9]|[5-9])/ },
      lacks: ['json_schema'],
      userField: 'user_id',
    },
  },
};
