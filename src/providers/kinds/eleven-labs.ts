import { elevenLabsSpeech } from '../../formats/speech/index.ts';
import { elevenLabsTranscription } from '../../formats/transcription/index.ts';
import type { ProviderKind } from '../provider.ts';

/** ElevenLabs: speech and transcription, no conversations (elevenlabs.io/docs/api-reference). */
export const elevenLabs: ProviderKind = {
  id: 'elevenlabs',
  name: 'ElevenLabs',
  baseUrl: 'https://api.elevenlabs.io/v1',
  environment: 'ELEVENLABS_API_KEY',
  author: 'elevenlabs',
  service: { role: 'vendor', registryId: null },
  guide: { verifiedBy: 'documentation', quirks: 'the voice is in the path' },
  headers: (credential): Record<string, string> => (credential === null ? {} : { 'xi-api-key': credential }),
  origin: 'unknown',
  dialect: {},
  speech: elevenLabsSpeech,
  transcription: elevenLabsTranscription,
};
