import { chat } from './chat.ts';
import type { ProviderKind } from './provider.ts';

/** Answers 400 to these parameters (console.groq.com/docs/openai). */
export const groq: ProviderKind = {
  ...chat,
  id: 'groq',
  name: 'Groq',
  baseUrl: 'https://api.groq.com/openai/v1',
  environment: 'GROQ_API_KEY',
  author: 'groq',
  dialect: { chat: { refuses: ['logprobs', 'top_logprobs', 'logit_bias'] } },
};
