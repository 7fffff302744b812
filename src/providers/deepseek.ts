import { chat } from './chat.ts';
import type { ProviderKind } from './provider.ts';

/**
 * While it thinks, it answers 400 when an earlier turn that called tools comes back without its thinking
 * (api-docs.deepseek.com/guides/thinking_mode).
 */
export const deepseek: ProviderKind = {
  ...chat,
  id: 'deepseek',
  name: 'DeepSeek',
  baseUrl: 'https://api.deepseek.com/v1',
  environment: 'DEEPSEEK_API_KEY',
  author: 'deepseek',
  bareModels: /^deepseek-/,
  dialect: { chat: { reasoningReplay: 'reasoning_content' } },
};
