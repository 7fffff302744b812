import { geminiEmbedding } from '../../formats/embedding/index.ts';
import { googleImages } from '../../formats/image/index.ts';
import type { ProviderKind } from '../provider.ts';

/** Any service that speaks the Gemini format, without quirks. The key is never in the URL, where logs would show it. */
export const gemini: ProviderKind = {
  id: 'gemini',
  name: 'Gemini API',
  speaks: 'gemini',
  guide: { verifiedBy: 'recording', quirks: 'the plain format, for any other service' },
  headers: (credential): Record<string, string> => (credential === null ? {} : { 'x-goog-api-key': credential }),
  origin: 'google-gemini-v1',
  dialect: {},
  countsTokens: true,
  embedding: geminiEmbedding,
  image: googleImages,
};
