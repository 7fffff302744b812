import { openaiEmbedding } from '../../formats/embedding/index.ts';
import { rerankAdapter } from '../../formats/rerank/index.ts';
import { openaiSpeech } from '../../formats/speech/index.ts';
import { openaiTranscription } from '../../formats/transcription/index.ts';
import { openaiBatches } from '../batches/openai.ts';
import type { ProviderKind } from '../provider.ts';
import { chat } from './chat.ts';

/**
 * `reasoning.enabled` switches the thinking of hybrid models; OpenAI's open models use an effort
 * (docs.together.ai/docs/reasoning-overview).
 */
export const together: ProviderKind = {
  ...chat,
  id: 'together',
  name: 'Together',
  baseUrl: 'https://api.together.xyz/v1',
  environment: 'TOGETHER_API_KEY',
  author: 'together',
  service: { role: 'host', registryId: 'togetherai' },
  guide: { verifiedBy: 'documentation', quirks: '`reasoning.enabled` or effort, thinking in the text of some models' },
  // docs.together.ai/docs/batch-inference
  batches: openaiBatches({
    paths: ['/chat/completions'],
    limits: { items: 50_000, bytes: 100 * 1024 * 1024 },
    uploadPath: '/files/upload',
    uploadFields: (name) => ({ purpose: 'batch-api', file_name: name, file_type: 'jsonl' }),
    unwrap: (response) => (response['job'] ?? response) as typeof response,
    hasMetadata: false,
  }),
  dialect: {
    chat: {
      reasoning: 'enabled',
      reasoningRules: [
        { models: /gpt-oss/, always: true, words: { none: 'low', minimal: 'low', xhigh: 'high', max: 'high' } },
      ],
      thinkTags: true,
    },
  },
  embedding: openaiEmbedding({
    takesTokens: false,
    takesUser: false,
    takesEncoding: false,
    dimensionsMember: null,
  }),
  rerank: rerankAdapter({ constants: { return_documents: false } }),
  // docs.together.ai/docs/text-to-speech
  speech: openaiSpeech({ formats: ['mp3', 'wav'], speeds: [1, 1], options: ['language', 'sample_rate'] }),
  transcription: openaiTranscription({ verbose: true }),
};
