/**
 * Embeddings and rerank by a small in-process model, without any account: Universal Sentence Encoder Lite for English,
 * from optional packages that contain its weights (`local/embedder.ts`). Rerank compares the query's vector with each
 * document's.
 */
import type { ModelSettings } from '../../base/config.ts';
import { parsePrice } from '../../base/money.ts';
import { openaiEmbedding } from '../../formats/embedding/index.ts';
import { rerankAdapter } from '../../formats/rerank/index.ts';
import { MAX_TEXT_TOKENS } from '../local/embedder.ts';
import { isInstalled } from '../local/thread.ts';
import { localTransport, MAX_TEXTS, MODEL } from '../local/transport.ts';
import type { ProviderKind } from '../provider.ts';

const FREE = parsePrice('0');

const useLite: ModelSettings = {
  id: `local/${MODEL}`,
  upstreamId: MODEL,
  name: 'Local: Universal Sentence Encoder Lite',
  contextLength: MAX_TEXT_TOKENS,
  maxCompletionTokens: null,
  pricing: { prompt: FREE, completion: FREE },
  inputModalities: ['text'],
  outputModalities: ['embeddings', 'rerank'],
  supportedParameters: [],
  // Nothing leaves the process and nothing is kept.
  dataPolicy: { zdr: true, trains: false, publishes: false, retainsForSafety: false },
  region: null,
  quantization: null,
};

export const local: ProviderKind = {
  id: 'local',
  name: 'Local',
  headers: () => ({}),
  origin: 'unknown',
  dialect: {},
  transport: localTransport(),
  models: [useLite],
  standIn: isInstalled(),
  embedding: openaiEmbedding({
    maxInputs: MAX_TEXTS,
    takesTokens: false,
    takesUser: false,
    takesEncoding: false,
    dimensionsMember: null,
  }),
  rerank: rerankAdapter({ maxDocuments: MAX_TEXTS }),
};
