import { openaiEmbedding } from '../formats/embedding/index.ts';
import { openaiImages } from '../formats/image/index.ts';
import { bearer } from './bearer.ts';
import type { ProviderKind } from './provider.ts';
import { openaiResponses } from './responses.ts';

/**
 * OpenAI: chat completions, and responses for the clients of that form. Its reasoning models refuse `max_tokens` and want `developer` for `system`; every other
 * model takes both newer names. `user` is deprecated in favour of `safety_identifier`, which is made for a hashed id.
 */
export const openai: ProviderKind = {
  id: 'openai',
  name: 'OpenAI',
  speaks: 'chat',
  alsoSpeaks: ['responses'],
  baseUrl: 'https://api.openai.com/v1',
  environment: 'OPENAI_API_KEY',
  author: 'openai',
  bareModels: /^(ft:)?(gpt-|chatgpt-|codex-|o\d(-|$)|text-embedding-|dall-e-)/,
  headers: bearer,
  origin: 'openai-responses-v1',
  dialect: {
    chat: {
      maxTokens: 'max_completion_tokens',
      developerRole: true,
      userField: 'safety_identifier',
      mediaBytes: ['file'],
    },
    responses: openaiResponses,
  },
  embedding: openaiEmbedding(),
  image: openaiImages,
};
