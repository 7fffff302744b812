import { chat } from './chat.ts';
import type { ProviderKind } from './provider.ts';

/** Z.AI: GLM. Between tool calls it wants its thinking back (docs.z.ai/guides/capabilities/thinking-mode). */
export const zai: ProviderKind = {
  ...chat,
  id: 'zai',
  name: 'Z.AI',
  baseUrl: 'https://api.z.ai/api/paas/v4',
  environment: 'ZAI_API_KEY',
  author: 'z-ai',
  bareModels: /^glm-/,
  dialect: { chat: { reasoningReplay: 'reasoning_content' } },
};
