import type { ReasoningRule } from '../../formats/chat/index.ts';
import { completionAdapter } from '../../formats/completion/index.ts';
import { openaiEmbedding } from '../../formats/embedding/index.ts';
import { openaiImages } from '../../formats/image/index.ts';
import { openaiModeration } from '../../formats/moderation/index.ts';
import { openaiSpeech } from '../../formats/speech/index.ts';
import { openaiTranscription } from '../../formats/transcription/index.ts';
import { openaiVideos } from '../../formats/video/index.ts';
import { bearer } from '../auth/bearer.ts';
import { openaiBatches } from '../batches/openai.ts';
import { openaiTools } from '../native-tools.ts';
import type { ProviderKind } from '../provider.ts';
import { openaiResponses } from './responses.ts';

/**
 * Models that always think reject sampling parameters, even with default values
 * (platform.openai.com/docs/guides/reasoning).
 */
const THINKING = /^(o\d|gpt-5(-mini|-nano|-pro|-codex)?(-\d{4}|$))/;
const SAMPLING = [
  'temperature',
  'top_p',
  'presence_penalty',
  'frequency_penalty',
  'logprobs',
  'top_logprobs',
  'logit_bias',
];

/** Supported efforts by model; models without thinking reject the parameter. */
const RULES: readonly ReasoningRule[] = [
  { models: /^o\d/, words: { none: 'low', minimal: 'low', xhigh: 'high', max: 'high' } },
  {
    models: /^(ft:)?(gpt-[34]|chatgpt-)|^gpt-5(\.\d)?-chat/,
    words: { none: null, minimal: null, low: null, medium: null, high: null, xhigh: null, max: null },
  },
  { models: /^gpt-5\.1/, words: { minimal: 'low', xhigh: 'high', max: 'high' } },
  { models: /^gpt-5\.\d/, words: { minimal: 'low' } },
  { models: /^gpt-5/, words: { none: 'minimal', xhigh: 'high', max: 'high' } },
];

/**
 * OpenAI: chat completions, and responses for clients of that format. Its reasoning models reject `max_tokens` and
 * require `developer` instead of `system`; other models accept both newer names. `user` is deprecated in favor of
 * `safety_identifier`, which is meant for a hashed id.
 */
export const openai: ProviderKind = {
  id: 'openai',
  name: 'OpenAI',
  speaks: 'chat',
  alsoSpeaks: ['responses'],
  baseUrl: 'https://api.openai.com/v1',
  environment: 'OPENAI_API_KEY',
  author: 'openai',
  bareModels:
    /^(ft:)?(gpt-|chatgpt-|codex-|o\d(-|$)|text-embedding-|dall-e-|tts-|whisper-|(omni|text)-moderation-|sora-)/,
  service: {
    role: 'vendor',
    registryId: 'openai',
    policies: {
      privacyPolicyUrl: 'https://openai.com/policies/privacy-policy/',
      termsOfServiceUrl: 'https://openai.com/policies/row-terms-of-use/',
      statusPageUrl: 'https://status.openai.com/',
      headquarters: 'US',
    },
  },
  guide: {
    verifiedBy: 'recording',
    quirks: 'newer names of the token limit and the system role, hashed `safety_identifier`, responses format too',
  },
  headers: bearer,
  origin: 'openai-responses-v1',
  dialect: {
    chat: {
      maxTokens: 'max_completion_tokens',
      developerRole: true,
      strictCallIds: true,
      customTools: true,
      allowedTools: true,
      anyArguments: true,
      userField: 'safety_identifier',
      refusesFor: [{ models: THINKING, parameters: SAMPLING }],
      reasoningRules: RULES,
      mediaBytes: ['file'],
    },
    responses: openaiResponses,
  },
  nativeTools: openaiTools,
  completion: completionAdapter({
    able: ['suffix', 'prompts', 'tokens', 'echo', 'best_of'],
    models: /-instruct|davinci-002|babbage-002/,
  }),
  embedding: openaiEmbedding(),
  image: openaiImages,
  // The first models know neither instructions nor events.
  speech: openaiSpeech({ voice: 'alloy', instructed: /^(?!tts-1)/, eventful: /^(?!tts-1)/ }),
  moderation: openaiModeration(),
  video: openaiVideos,
  transcription: openaiTranscription({ plain: /transcribe/, streams: /transcribe/, extras: true }),
  batches: openaiBatches({
    paths: ['/chat/completions', '/responses', '/embeddings'],
    limits: { items: 50_000, bytes: 200 * 1024 * 1024 },
  }),
};
