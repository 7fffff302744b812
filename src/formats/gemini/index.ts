/**
 * Gemini's form (`generateContent`), which Google's services are spoken to in: the Gemini API and Vertex AI. Spoken only;
 * pure functions.
 */
import type { SpokenFormat } from '../conversation/format.ts';
import { decodeReply } from './decode-reply.ts';
import { GeminiDecoder } from './decoder.ts';
import { encode } from './encode.ts';
import { decodeFailure } from './failure.ts';
import { wantsBytes } from './media.ts';

export type { GeminiDialect } from './dialect.ts';

export const gemini: SpokenFormat = {
  id: 'gemini',
  path: geminiPath,
  encode,
  decodeReply: (value, _dialect, seed) => decodeReply(value, seed),
  decoder: (_dialect, seed) => new GeminiDecoder(seed),
  decodeFailure,
  wantsBytes: (_kind, url) => wantsBytes(url),
};

/** The method of a model, `models/gemini-...` or the bare name. The name may be a client's: nothing in it leaves its place. */
export function geminiPath(model: string, stream: boolean): string {
  const name = encodeURIComponent(model.replace(/^models\//, ''));
  return `/models/${name}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`;
}
