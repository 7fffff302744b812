import { chat } from './chat.ts';
import type { ProviderKind } from './provider.ts';

/** Answers 400 to these parameters (inference-docs.cerebras.ai/resources/openai). */
export const cerebras: ProviderKind = {
  ...chat,
  id: 'cerebras',
  name: 'Cerebras',
  baseUrl: 'https://api.cerebras.ai/v1',
  environment: 'CEREBRAS_API_KEY',
  author: 'cerebras',
  dialect: {
    chat: {
      refuses: ['frequency_penalty', 'presence_penalty', 'logit_bias', 'parallel_tool_calls', 'service_tier'],
    },
  },
};
