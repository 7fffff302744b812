import { openaiEmbedding } from '../../formats/embedding/index.ts';
import { rerankAdapter } from '../../formats/rerank/index.ts';
import { bearer } from '../auth/bearer.ts';
import type { ProviderKind } from '../provider.ts';

/** Jina: embeddings and rerank of texts and images, no conversations (api.jina.ai/redoc). */
export const jina: ProviderKind = {
  id: 'jina',
  name: 'Jina AI',
  baseUrl: 'https://api.jina.ai/v1',
  environment: 'JINA_API_KEY',
  author: 'jina',
  bareModels: /^jina-/,
  service: { role: 'vendor', registryId: null },
  guide: { verifiedBy: 'documentation', quirks: 'one text or image per input' },
  headers: bearer,
  origin: 'unknown',
  dialect: {},
  embedding: openaiEmbedding({
    takesTokens: false,
    takesUser: false,
    encodingMember: 'embedding_type',
    inputTypeMember: 'task',
    inputTypes: {
      search_query: 'retrieval.query',
      search_document: 'retrieval.passage',
      clustering: 'separation',
      similarity: 'text-matching',
    },
    parts: 'jina',
  }),
  rerank: rerankAdapter({ images: 'jina', constants: { return_documents: false } }),
};
