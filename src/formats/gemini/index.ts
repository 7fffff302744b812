/**
 * The Gemini format (`generateContent`), spoken to the Gemini API and Vertex AI. Clients cannot use it. Pure functions.
 */
import type { SpokenFormat } from '../conversation/format.ts';
import { decodeReply } from './decode-reply.ts';
import { GeminiDecoder } from './decoder.ts';
import { encode } from './encode.ts';
import { decodeFailure } from './failure.ts';
import { familyOf } from './family.ts';
import { wantsBytes } from './media.ts';
import { geminiPath } from './path.ts';
import { tokenCount } from './token-count.ts';

export type { GeminiDialect } from './dialect.ts';
export { geminiPath } from './path.ts';
export { vertexTokenCount } from './token-count.ts';

export const gemini: SpokenFormat = {
  id: 'gemini',
  path: geminiPath,
  encode,
  decodeReply: (value, _dialect, seed) => decodeReply(value, seed),
  decoder: (_dialect, seed) => new GeminiDecoder(seed),
  decodeFailure,
  longestToolName: 64,
  wantsBytes: (_kind, url) => wantsBytes(url),
  searchesWeb: ({ model }, withFunctions) => !withFunctions || familyOf(model).third,
  tokenCount,
};
