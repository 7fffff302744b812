import { geminiBatches } from '../batches/gemini.ts';
import { geminiTools } from '../native-tools.ts';
import type { ProviderKind } from '../provider.ts';
import { gemini } from './gemini.ts';

/** Google's Gemini API. */
export const google: ProviderKind = {
  ...gemini,
  id: 'google',
  name: 'Google AI Studio',
  baseUrl: 'https://generativelanguage.googleapis.com/v1beta',
  environment: 'GEMINI_API_KEY',
  alsoEnvironment: ['GOOGLE_API_KEY'],
  author: 'google',
  nativeTools: geminiTools,
  batches: geminiBatches,
  bareModels: /^(gemini|gemma|learnlm|imagen)-/,
  service: { role: 'vendor', registryId: 'google', aliases: ['google-ai-studio'] },
  guide: { verifiedBy: 'recording', quirks: 'see [Gemini](../guides/google.md)' },
};
