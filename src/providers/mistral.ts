import { chat } from './chat.ts';
import type { ProviderKind } from './provider.ts';

/**
 * Answers 422 to every parameter that it does not list (docs.mistral.ai/api), `stream_options` and the newer name of the
 * output cap among them. Usage comes with every stream unasked.
 */
export const mistral: ProviderKind = {
  ...chat,
  id: 'mistral',
  name: 'Mistral',
  baseUrl: 'https://api.mistral.ai/v1',
  environment: 'MISTRAL_API_KEY',
  author: 'mistralai',
  dialect: {
    chat: {
      streamUsage: false,
      userField: 'none',
      refuses: [
        'seed',
        'logprobs',
        'top_logprobs',
        'logit_bias',
        'top_k',
        'top_a',
        'min_p',
        'repetition_penalty',
        'service_tier',
        'verbosity',
      ],
    },
  },
};
