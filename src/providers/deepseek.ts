import { completionAdapter } from '../formats/completion/index.ts';
import { chat } from './chat.ts';
import type { ProviderKind } from './provider.ts';

/**
 * Thinking is switched by `thinking`, its effort is one of three words, and while it thinks an earlier turn that called
 * tools must come back with its thinking, or the answer is 400 (api-docs.deepseek.com/guides/thinking_mode). Of answer
 * formats it has text and JSON.
 */
export const deepseek: ProviderKind = {
  ...chat,
  id: 'deepseek',
  name: 'DeepSeek',
  baseUrl: 'https://api.deepseek.com/v1',
  environment: 'DEEPSEEK_API_KEY',
  author: 'deepseek',
  bareModels: /^deepseek-/,
  dialect: {
    chat: {
      reasoning: 'thinking',
      reasoningRules: [{ words: { minimal: 'low', medium: 'high', xhigh: 'high' } }],
      reasoningReplay: 'reasoning_content',
      requiresThinking: { unasked: /reasoner|v[4-9]|^deepseek-(flash|pro)/ },
      lacks: ['json_schema'],
    },
  },
  // Filling gaps stands in a beta of its own (api-docs.deepseek.com/guides/fim_completion).
  completion: completionAdapter({
    able: ['suffix', 'echo'],
    url: (baseUrl) => `${baseUrl.replace(/\/(?:v1|beta)$/, '')}/beta/completions`,
    userField: 'none',
  }),
};
