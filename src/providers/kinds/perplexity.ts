import { openaiEmbedding } from '../../formats/embedding/index.ts';
import { perplexityTools } from '../native-tools.ts';
import type { ProviderKind } from '../provider.ts';
import { chat } from './chat.ts';

/**
 * Perplexity replies from web searches. It rejects conversations with 400 unless user and assistant alternate after the
 * system messages (perplexityai/api-discussion 265), has no tool calls, and its reasoning models write their thinking
 * into the text (docs.perplexity.ai/api-reference/chat-completions-post).
 */
export const perplexity: ProviderKind = {
  ...chat,
  id: 'perplexity',
  name: 'Perplexity',
  baseUrl: 'https://api.perplexity.ai',
  environment: 'PERPLEXITY_API_KEY',
  author: 'perplexity',
  bareModels: /^sonar(-|$)/,
  service: { role: 'vendor', registryId: 'perplexity' },
  guide: {
    verifiedBy: 'recording',
    quirks: 'citations and search results, alternating roles, thinking in the text, no tools',
  },
  nativeTools: perplexityTools,
  dialect: {
    chat: {
      strictTemplate: true,
      thinkTags: true,
      lacks: ['tools'],
      refuses: [
        'stop',
        'logit_bias',
        'logprobs',
        'top_logprobs',
        'seed',
        'n',
        'parallel_tool_calls',
        'service_tier',
        'top_a',
        'min_p',
        'repetition_penalty',
      ],
      reasoningRules: [
        { models: /reasoning|research/, words: { none: 'minimal', xhigh: 'high', max: 'high' } },
        { words: { none: null, minimal: null, low: null, medium: null, high: null, xhigh: null, max: null } },
      ],
    },
  },
  embedding: openaiEmbedding({
    path: '/v1/embeddings',
    int8: true,
    takesTokens: false,
    takesUser: false,
    takesEncoding: false,
  }),
};
