/**
 * Embeddings: the public format and the adapters per family of services. `openai.ts` serves those that speak the public
 * format, with dialects; every other family has its own file.
 */
import type { JsonDocument } from '../../base/json.ts';
import { encodeFailure } from '../chat/encode-failure.ts';
import { excessMediaBytes } from '../conversation/media-size.ts';
import { renewed } from '../conversation/renewal.ts';
import { askedOf, loggedPrompt } from '../direct/body.ts';
import { type Adapter, type DirectFormat, estimatedTokens, inputUsage } from '../direct/index.ts';
import { textsWith } from '../texts/index.ts';
import { type EmbeddingAnswer, encodeReply } from './reply.ts';
import { check, decode, type EmbeddingRequest, longestInput, mediaOf, schema, tokensGiven } from './request.ts';

export type EmbeddingAdapter = Adapter<EmbeddingRequest, EmbeddingAnswer>;

export { bedrockEmbedding } from './bedrock.ts';
export { cohereEmbedding } from './cohere.ts';
export { geminiEmbedding, vertexEmbedding } from './gemini.ts';
export { embeddingForGemini, embeddingsRequestOf } from './gemini-client.ts';
export { type EmbeddingDialect, openaiEmbedding } from './openai.ts';
export { EmbeddingsReply } from './reply.ts';
export { voyageEmbedding } from './voyage.ts';

/** Most tokens that a service counts for one image. */
const IMAGE_TOKENS = 8_192;
/** Audio, video and documents are bounded only by the context; this replaces an unknown one. */
const UNKNOWN_CONTEXT_TOKENS = 1_000_000;
/** Start and end tokens, and prompts that a service adds to each input. */
const OVERHEAD_TOKENS = 32;

function writtenBytes(document: JsonDocument): number {
  const { images, documents } = mediaOf(document);
  return document.bytes.length - (images + documents === 0 ? 0 : excessMediaBytes(document.structure));
}

export const embedding: DirectFormat<EmbeddingRequest, EmbeddingAnswer> = {
  id: 'embedding',
  schema,
  check,
  texts: textsWith(),
  loggedContent: (document) => loggedPrompt(document, 'input'),
  facts: (document) => askedOf(document, mediaOf(document)),
  decode,
  longest: longestInput,
  most({ document, count }, { contextLength }) {
    const { images, documents } = mediaOf(document);
    // A token has at least one byte, and a token id in a list takes at least two characters.
    const written = document.bytes.length + count * OVERHEAD_TOKENS + images * IMAGE_TOKENS;
    const promptTokens = written + documents * (contextLength ?? UNKNOWN_CONTEXT_TOKENS);
    return {
      promptTokens: contextLength === null ? promptTokens : Math.min(promptTokens, count * contextLength),
      inputImages: images,
    };
  },
  likely: ({ document }) => inputUsage(tokensGiven(document) ?? estimatedTokens(writtenBytes(document))),
  encodeReply,
  encodeFailure,
  renew: (json, { id, metadataKey }) => renewed(json, { members: { id: () => JSON.stringify(id) }, metadataKey }),
};
