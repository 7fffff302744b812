/**
 * Embeddings (wire/embeddings.md): the public form, and how families of services are asked for vectors. `openai.ts` has
 * those that speak the public form, in dialects; every other family has a file of its own.
 */
import { encodeFailure } from '../chat/encode-failure.ts';
import { renewed } from '../conversation/renewal.ts';
import { askedOf } from '../single/body.ts';
import { type Adapter, inputUsage, type SingleForm } from '../single/index.ts';
import { type EmbeddingAnswer, encodeReply } from './reply.ts';
import { check, decode, type EmbeddingRequest, longestInput, mediaOf, schema, tokensGiven } from './request.ts';

export type EmbeddingAdapter = Adapter<EmbeddingRequest, EmbeddingAnswer>;

export { bedrockEmbedding } from './bedrock.ts';
export { cohereEmbedding } from './cohere.ts';
export { geminiEmbedding, vertexEmbedding } from './gemini.ts';
export { type EmbeddingDialect, openaiEmbedding } from './openai.ts';
export { EmbeddingsReply } from './reply.ts';
export { voyageEmbedding } from './voyage.ts';

/** The most that a service counts for one picture. */
const IMAGE_TOKENS = 8_192;
/** Sound, video and documents are bounded by nothing but the context, and this stands for one that is not known. */
const UNKNOWN_CONTEXT_TOKENS = 1_000_000;
const BYTES_PER_TOKEN = 4;
/** Marks of beginning and end, and prompts that a service puts in front of an input. */
const OVERHEAD_TOKENS = 32;

export const embedding: SingleForm<EmbeddingRequest, EmbeddingAnswer> = {
  id: 'embedding',
  schema,
  check,
  asked: (document) => askedOf(document, mediaOf(document)),
  decode,
  longest: longestInput,
  most({ document, count }, { contextLength }) {
    const { images, documents } = mediaOf(document);
    // No token is shorter than a byte, and none of a list of ids has fewer than two characters.
    const written = document.bytes.length + count * OVERHEAD_TOKENS + images * IMAGE_TOKENS;
    const promptTokens = written + documents * (contextLength ?? UNKNOWN_CONTEXT_TOKENS);
    return {
      promptTokens: contextLength === null ? promptTokens : Math.min(promptTokens, count * contextLength),
      inputImages: images,
    };
  },
  likely: ({ document }) => inputUsage(tokensGiven(document) ?? Math.ceil(document.bytes.length / BYTES_PER_TOKEN)),
  encodeReply,
  encodeFailure,
  renew: (json, { id, metadataKey }) => renewed(json, { members: { id: () => JSON.stringify(id) }, metadataKey }),
};
