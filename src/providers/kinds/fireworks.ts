import { completionAdapter } from '../../formats/completion/index.ts';
import { openaiEmbedding } from '../../formats/embedding/index.ts';
import { rerankAdapter } from '../../formats/rerank/index.ts';
import type { ProviderKind } from '../provider.ts';
import { chat } from './chat.ts';

/**
 * Thinking arrives as `reasoning_content` and is sent back under that name; some models write it into the text
 * (docs.fireworks.ai/guides/reasoning). Model names are paths: `accounts/fireworks/models/...`.
 */
export const fireworks: ProviderKind = {
  ...chat,
  id: 'fireworks',
  name: 'Fireworks',
  baseUrl: 'https://api.fireworks.ai/inference/v1',
  environment: 'FIREWORKS_API_KEY',
  author: 'fireworks',
  service: { role: 'host', registryId: 'fireworks-ai' },
  guide: {
    verifiedBy: 'documentation',
    quirks: 'thinking is sent back; model names are paths (`accounts/fireworks/models/...`)',
  },
  dialect: {
    chat: {
      reasoningReplay: 'reasoning_content',
      reasoningRules: [
        { models: /gpt-oss/, words: { none: 'low', minimal: 'low', xhigh: 'high', max: 'high' } },
        { words: { minimal: 'low' } },
      ],
      thinkTags: true,
      // docs.fireworks.ai/structured-responses/structured-output-grammar-based
      grammar: 'response_format',
    },
  },
  completion: completionAdapter({ able: ['prompts', 'tokens', 'echo'] }),
  embedding: openaiEmbedding({ takesUser: false, takesEncoding: false }),
  rerank: rerankAdapter({ constants: { return_documents: false } }),
};
