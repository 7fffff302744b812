import { xaiImages } from '../../formats/image/index.ts';
import { xaiBatches } from '../batches/xai.ts';
import { xaiTools } from '../native-tools.ts';
import type { ProviderKind } from '../provider.ts';
import { chat } from './chat.ts';
import { openaiResponses } from './responses.ts';

const NONE = { none: null, minimal: null, low: null, medium: null, high: null, xhigh: null, max: null };

/**
 * xAI: Grok. It counts thinking outside the completion, which the chat format detects from the totals. Thinking models
 * reject penalties and stop sequences; which of them accept an effort varies (docs.x.ai/docs/guides/reasoning).
 */
export const xai: ProviderKind = {
  ...chat,
  id: 'xai',
  name: 'xAI',
  baseUrl: 'https://api.x.ai/v1',
  environment: 'XAI_API_KEY',
  author: 'x-ai',
  bareModels: /^grok-/,
  service: { role: 'vendor', registryId: 'xai' },
  guide: { verifiedBy: 'recording', quirks: 'thinking counted in addition to the completion, parameters by model' },
  alsoSpeaks: ['responses'],
  origin: 'xai-responses-v1',
  image: xaiImages,
  batches: xaiBatches,
  nativeTools: xaiTools,
  dialect: {
    responses: {
      ...openaiResponses,
      tools: ['web_search'],
      minOutputTokens: 1,
      userField: 'user',
      origin: 'xai-responses-v1',
    },
    chat: {
      refusesFor: [
        {
          models: /^grok-(3-mini|4|5|build|code|latest)(?!.*non-reasoning)/,
          parameters: ['frequency_penalty', 'presence_penalty', 'stop', 'logit_bias'],
        },
      ],
      reasoningRules: [
        { models: /^grok-3-mini/, words: { none: 'low', minimal: 'low', medium: 'low', xhigh: 'high', max: 'high' } },
        { models: /^grok-4\.3|^grok-latest/, words: { minimal: 'low', xhigh: 'high', max: 'high' } },
        { models: /^grok-(4\.[4-9]|[5-9])/, words: { none: 'low', minimal: 'low', xhigh: 'high', max: 'high' } },
        { models: /multi-agent/, words: { none: 'low', minimal: 'low', max: 'xhigh' } },
        { models: /^grok-/, words: NONE },
      ],
    },
  },
};
