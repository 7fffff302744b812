import { chat } from './chat.ts';
import type { ProviderKind } from './provider.ts';

/** xAI: Grok. It counts thinking beside the completion, which the chat format sees from the totals. */
export const xai: ProviderKind = {
  ...chat,
  id: 'xai',
  name: 'xAI',
  baseUrl: 'https://api.x.ai/v1',
  environment: 'XAI_API_KEY',
  author: 'x-ai',
  bareModels: /^grok-/,
};
