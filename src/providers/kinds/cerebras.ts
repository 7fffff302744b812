import type { ProviderKind } from '../provider.ts';
import { chat } from './chat.ts';

/**
 * Cerebras rejects these parameters with 400 (inference-docs.cerebras.ai/resources/openai), as well as unknown message
 * members and efforts other than the three of OpenAI's open models.
 */
export const cerebras: ProviderKind = {
  ...chat,
  id: 'cerebras',
  name: 'Cerebras',
  baseUrl: 'https://api.cerebras.ai/v1',
  environment: 'CEREBRAS_API_KEY',
  author: 'cerebras',
  service: { role: 'host', registryId: 'cerebras' },
  guide: { verifiedBy: 'recording', quirks: 'strict messages and parameters' },
  dialect: {
    chat: {
      refuses: [
        'frequency_penalty',
        'presence_penalty',
        'logit_bias',
        'parallel_tool_calls',
        'service_tier',
        'prompt_cache_key',
        'verbosity',
      ],
      reasoningRules: [
        { models: /gpt-oss/, words: { none: 'low', minimal: 'low', xhigh: 'high', max: 'high' } },
        { models: /glm/, words: { minimal: 'low', xhigh: 'high', max: 'high' } },
        { words: { none: null, minimal: null, low: null, medium: null, high: null, xhigh: null, max: null } },
      ],
      messageFields: {
        system: ['role', 'content', 'name'],
        user: ['role', 'content', 'name'],
        assistant: ['role', 'content', 'name', 'tool_calls'],
        tool: ['role', 'content', 'tool_call_id', 'name'],
      },
    },
  },
};
