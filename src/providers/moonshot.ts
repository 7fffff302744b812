import { chat } from './chat.ts';
import type { ProviderKind } from './provider.ts';

/** Moonshot: Kimi. Its thinking models want the thinking of earlier turns back, under the name that they gave it. */
export const moonshot: ProviderKind = {
  ...chat,
  id: 'moonshot',
  name: 'Moonshot AI',
  baseUrl: 'https://api.moonshot.ai/v1',
  environment: 'MOONSHOT_API_KEY',
  author: 'moonshotai',
  bareModels: /^(kimi|moonshot)-/,
  dialect: { chat: { reasoningReplay: 'reasoning_content' } },
};
