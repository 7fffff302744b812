import { cohere as cohereForm } from '../../formats/cohere/index.ts';
import { cohereEmbedding } from '../../formats/embedding/index.ts';
import { rerankAdapter } from '../../formats/rerank/index.ts';
import { bearer } from '../auth/bearer.ts';
import type { ProviderKind } from '../provider.ts';

/** Cohere in its own format, because its OpenAI-compatible API lacks citations, tool plans and thinking. */
export const cohere: ProviderKind = {
  id: 'cohere',
  name: 'Cohere',
  speaks: 'cohere',
  baseUrl: 'https://api.cohere.com/v2',
  environment: 'COHERE_API_KEY',
  alsoEnvironment: ['CO_API_KEY'],
  author: 'cohere',
  bareModels: /^(command|c4ai|embed|rerank)-/,
  service: { role: 'vendor', registryId: 'cohere' },
  guide: {
    verifiedBy: 'recording',
    quirks: 'own format with citations and tool plans, see [Cohere](../guides/cohere.md)',
  },
  headers: bearer,
  decodeFailure: cohereForm.decodeFailure,
  origin: 'unknown',
  dialect: {},
  embedding: cohereEmbedding(),
  rerank: rerankAdapter({ members: ['max_tokens_per_doc', 'priority'] }),
};
