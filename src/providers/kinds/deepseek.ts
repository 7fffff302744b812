import { completionAdapter } from '../../formats/completion/index.ts';
import type { ProviderKind } from '../provider.ts';
import { chat } from './chat.ts';

/**
 * `thinking` switches thinking, whose effort has three levels. While thinking is on, an earlier turn that called tools
 * must be sent back with its thinking, or the reply is 400 (api-docs.deepseek.com/guides/thinking_mode). Output formats
 * are text and JSON only.
 */
export const deepseek: ProviderKind = {
  ...chat,
  id: 'deepseek',
  name: 'DeepSeek',
  baseUrl: 'https://api.deepseek.com/v1',
  environment: 'DEEPSEEK_API_KEY',
  author: 'deepseek',
  bareModels: /^deepseek-/,
  service: { role: 'vendor', registryId: 'deepseek' },
  guide: {
    verifiedBy: 'recording',
    quirks: '`thinking` switch and effort, thinking is sent back, no response schemas',
  },
  dialect: {
    chat: {
      reasoning: 'thinking',
      reasoningRules: [{ words: { minimal: 'low', medium: 'high', xhigh: 'high' } }],
      reasoningReplay: 'reasoning_content',
      requiresThinking: { unasked: /reasoner|v[4-9]|^deepseek-(flash|pro)/ },
      lacks: ['json_schema'],
    },
  },
  // Fill-in-the-middle is a beta at another URL (api-docs.deepseek.com/guides/fim_completion).
  completion: completionAdapter({
    able: ['suffix', 'echo'],
    url: (baseUrl) => `${baseUrl.replace(/\/(?:v1|beta)$/, '')}/beta/completions`,
    userField: 'none',
  }),
};
