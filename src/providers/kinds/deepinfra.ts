import { openaiEmbedding } from '../../formats/embedding/index.ts';
import { openaiSpeech } from '../../formats/speech/index.ts';
import { openaiTranscription } from '../../formats/transcription/index.ts';
import type { ProviderKind } from '../provider.ts';
import { chat } from './chat.ts';

/** Open models with a chat API (deepinfra.com/docs/openai_api). Some of them write their thinking into the text. */
export const deepinfra: ProviderKind = {
  ...chat,
  id: 'deepinfra',
  name: 'DeepInfra',
  baseUrl: 'https://api.deepinfra.com/v1/openai',
  environment: 'DEEPINFRA_API_KEY',
  alsoEnvironment: ['DEEPINFRA_TOKEN'],
  author: 'deepinfra',
  service: { role: 'host', registryId: 'deepinfra' },
  guide: { verifiedBy: 'documentation', quirks: 'thinking in the text of some models' },
  dialect: { chat: { reasoningReplay: 'reasoning_content', thinkTags: true } },
  embedding: openaiEmbedding({ takesTokens: false, takesUser: false }),
  // deepinfra.com/docs/advanced/openai_tts
  speech: openaiSpeech(),
  transcription: openaiTranscription({ verbose: true }),
};
