import { completionAdapter } from '../../formats/completion/index.ts';
import { openaiEmbedding } from '../../formats/embedding/index.ts';
import { openaiModeration } from '../../formats/moderation/index.ts';
import { mistralBatches } from '../batches/mistral.ts';
import type { ProviderKind } from '../provider.ts';
import { chat } from './chat.ts';

/**
 * Mistral rejects parameters and message members that it does not document with 422 (docs.mistral.ai/api), including
 * `stream_options` and the newer name of the output cap; streams always report usage. Call ids have nine letters or
 * digits, and a user message may not directly follow a tool ("Unexpected role 'user' after role 'tool'").
 */
export const mistral: ProviderKind = {
  ...chat,
  id: 'mistral',
  name: 'Mistral',
  baseUrl: 'https://api.mistral.ai/v1',
  environment: 'MISTRAL_API_KEY',
  author: 'mistralai',
  bareModels: /^((open-)?(mistral|mixtral)|codestral|devstral|magistral|ministral|pixtral)-/,
  service: {
    role: 'vendor',
    registryId: 'mistral',
    policies: {
      privacyPolicyUrl: 'https://mistral.ai/terms/#privacy-policy',
      termsOfServiceUrl: 'https://mistral.ai/terms/#terms-of-use',
      statusPageUrl: 'https://status.mistral.ai/',
      headquarters: 'FR',
    },
  },
  guide: {
    verifiedBy: 'recording',
    quirks:
      'strict messages and parameters, no `stream_options`, `random_seed`, ids of nine characters, `prefix`, thinking in content parts',
  },
  dialect: {
    chat: {
      streamUsage: false,
      userField: 'none',
      renames: { seed: 'random_seed' },
      refuses: [
        'logprobs',
        'top_logprobs',
        'logit_bias',
        'top_k',
        'top_a',
        'min_p',
        'repetition_penalty',
        'service_tier',
        'verbosity',
        'prompt_cache_key',
        'modalities',
        'audio',
        'image_config',
        'web_search_options',
        'store',
      ],
      // Thinking is on or off; the older models lack the parameter.
      reasoningRules: [
        {
          models: /^(open-|magistral|ministral|codestral|devstral|pixtral)/,
          words: { none: null, minimal: null, low: null, medium: null, high: null, xhigh: null, max: null },
        },
        { words: { minimal: 'high', low: 'high', medium: 'high', xhigh: 'high', max: 'high' } },
      ],
      messageFields: {
        system: ['role', 'content'],
        user: ['role', 'content'],
        assistant: ['role', 'content', 'tool_calls', 'prefix'],
        tool: ['role', 'content', 'tool_call_id', 'name'],
      },
      nineCharacterIds: true,
      prefill: 'prefix',
      answersTools: true,
      documentUrl: true,
    },
  },
  // docs.mistral.ai/api, "Fill in the middle".
  completion: completionAdapter({
    able: ['suffix'],
    models: /codestral|devstral/,
    path: '/fim/completions',
    userField: 'none',
    streamUsage: false,
    renames: { seed: 'random_seed' },
    chatReply: true,
  }),
  batches: mistralBatches,
  // docs.mistral.ai/api/endpoint/classifiers
  moderation: openaiModeration({ images: false }),
  embedding: openaiEmbedding({ takesTokens: false, takesUser: false, dimensionsMember: 'output_dimension' }),
};
