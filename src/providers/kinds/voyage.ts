import { voyageEmbedding } from '../../formats/embedding/index.ts';
import { rerankAdapter } from '../../formats/rerank/index.ts';
import { bearer } from '../auth/bearer.ts';
import type { ProviderKind } from '../provider.ts';

/** Voyage: embeddings and rerank, no conversations (docs.voyageai.com/reference). */
export const voyage: ProviderKind = {
  id: 'voyage',
  name: 'Voyage AI',
  baseUrl: 'https://api.voyageai.com/v1',
  environment: 'VOYAGE_API_KEY',
  author: 'voyage',
  bareModels: /^(voyage|rerank-(lite-)?[12])/,
  service: { role: 'vendor', registryId: null, aliases: ['voyageai'] },
  guide: { verifiedBy: 'documentation', quirks: 'rerank also by recording' },
  headers: bearer,
  origin: 'unknown',
  dialect: {},
  embedding: voyageEmbedding,
  rerank: rerankAdapter({ topMember: 'top_k', maxDocuments: 1000, members: ['truncation'] }),
};
