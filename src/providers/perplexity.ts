import { chat } from './chat.ts';
import type { ProviderKind } from './provider.ts';

/** Answers 400 unless user and assistant alternate behind the system messages (perplexityai/api-discussion 265). */
export const perplexity: ProviderKind = {
  ...chat,
  id: 'perplexity',
  name: 'Perplexity',
  baseUrl: 'https://api.perplexity.ai',
  environment: 'PERPLEXITY_API_KEY',
  author: 'perplexity',
  bareModels: /^sonar(-|$)/,
  dialect: { chat: { strictTemplate: true } },
};
