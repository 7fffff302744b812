import { deepgramSpeech } from '../../formats/speech/index.ts';
import { deepgramTranscription } from '../../formats/transcription/index.ts';
import type { ProviderKind } from '../provider.ts';

/** Deepgram: speech and transcription, no conversations (developers.deepgram.com/reference). */
export const deepgram: ProviderKind = {
  id: 'deepgram',
  name: 'Deepgram',
  baseUrl: 'https://api.deepgram.com/v1',
  environment: 'DEEPGRAM_API_KEY',
  author: 'deepgram',
  service: { role: 'vendor', registryId: null },
  guide: { verifiedBy: 'documentation', quirks: 'the voice is part of the model name' },
  headers: (credential): Record<string, string> =>
    credential === null ? {} : { authorization: `Token ${credential}` },
  origin: 'unknown',
  dialect: {},
  speech: deepgramSpeech,
  transcription: deepgramTranscription,
};
