import { openaiEmbedding } from '../../formats/embedding/index.ts';
import { publicImages } from '../../formats/image/index.ts';
import { rerankAdapter } from '../../formats/rerank/index.ts';
import { publicSpeech } from '../../formats/speech/index.ts';
import { publicTranscription } from '../../formats/transcription/index.ts';
import { publicVideos } from '../../formats/video/index.ts';
import type { ProviderKind } from '../provider.ts';
import { chat } from './chat.ts';

/**
 * OpenRouter: the chat format with a `reasoning` object, signed thinking in `reasoning_details`, and cache marks
 * (openrouter.ai/docs/use-cases/reasoning-tokens).
 */
export const openrouter: ProviderKind = {
  ...chat,
  id: 'openrouter',
  name: 'OpenRouter',
  baseUrl: 'https://openrouter.ai/api/v1',
  environment: 'OPENROUTER_API_KEY',
  author: 'openrouter',
  service: { role: 'router', registryId: 'openrouter' },
  guide: { verifiedBy: 'recording', quirks: '`reasoning` object, signed details, cache breakpoints' },
  dialect: {
    chat: {
      reasoning: 'object',
      reasoningDetails: true,
      reasoningReplay: 'reasoning',
      cacheControl: true,
      grammar: 'response_format',
      python: true,
      webSearch: true,
    },
  },
  embedding: openaiEmbedding({ inputTypeMember: 'input_type', parts: 'public' }),
  rerank: rerankAdapter({ images: 'public' }),
  image: publicImages,
  speech: publicSpeech,
  transcription: publicTranscription,
  video: publicVideos,
};
