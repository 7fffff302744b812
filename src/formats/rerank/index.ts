/** Rerank: the public format and the adapter for rerank services. */
import { encodeFailure } from '../chat/encode-failure.ts';
import { excessMediaBytes } from '../conversation/media-size.ts';
import { askedOf, loggedPrompt } from '../direct/body.ts';
import { type Adapter, type DirectFormat, estimatedTokens, inputUsage } from '../direct/index.ts';
import { textsWith } from '../texts/index.ts';
import { unitsFor } from './families.ts';
import { encodeReply, type RerankAnswer } from './reply.ts';
import { check, decode, imagesIn, longestPair, type RerankRequest, schema } from './request.ts';

export type RerankAdapter = Adapter<RerankRequest, RerankAnswer>;

export { type RerankDialect, rerankAdapter } from './families.ts';
export { RerankReply } from './reply.ts';

/** Most tokens that a service counts for one image. */
const IMAGE_TOKENS = 8_192;
const OVERHEAD_TOKENS = 32;
/**
 * Services split long documents and charge each piece as a document: pieces of 500 tokens minus the query, documents of
 * at most 4,096 tokens.
 */
const PIECE_TOKENS = 250;
const LONGEST_DOCUMENT_TOKENS = 4_096;

export const rerank: DirectFormat<RerankRequest, RerankAnswer> = {
  id: 'rerank',
  schema,
  check,
  texts: textsWith(),
  loggedContent: (document) => loggedPrompt(document, 'query', 'documents'),
  facts: (document) => askedOf(document, { images: imagesIn(document), documents: 0 }),
  decode,
  longest: longestPair,
  most(request) {
    const queryBytes = Buffer.byteLength(request.query);
    const images = imagesIn(request.document);
    let pieces = 0;
    for (const { text = '' } of request.documents()) {
      const tokens = Math.min(Buffer.byteLength(text), LONGEST_DOCUMENT_TOKENS);
      pieces += Math.max(1, Math.ceil(tokens / PIECE_TOKENS));
    }
    return {
      // Each document is read together with the query.
      promptTokens:
        request.document.bytes.length + request.count * (queryBytes + OVERHEAD_TOKENS) + images * IMAGE_TOKENS,
      requests: unitsFor(pieces),
      inputImages: images,
    };
  },
  likely(request) {
    const excess = imagesIn(request.document) === 0 ? 0 : excessMediaBytes(request.document.structure);
    const bytes = request.document.bytes.length - excess + request.count * Buffer.byteLength(request.query);
    return { ...inputUsage(estimatedTokens(bytes)), searchUnits: unitsFor(request.count) };
  },
  encodeReply,
  encodeFailure,
};
