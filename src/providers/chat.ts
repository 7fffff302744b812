import { completionAdapter } from '../formats/completion/index.ts';
import { openaiEmbedding } from '../formats/embedding/index.ts';
import { rerankAdapter } from '../formats/rerank/index.ts';
import { bearer } from './bearer.ts';
import type { ProviderKind } from './provider.ts';

/** A service that speaks chat completions, without quirks. The kinds that differ from it in data only start from it. */
export const chat: ProviderKind = {
  id: 'chat',
  name: 'Chat Completions API',
  speaks: 'chat',
  headers: bearer,
  origin: 'unknown',
  dialect: {},
};

/** The kind by that name: a server of unknown make, which may have vectors and ranking at the usual paths too. */
export const anyChat: ProviderKind = {
  ...chat,
  dialect: { chat: { grammar: 'response_format', python: true } },
  completion: completionAdapter(),
  embedding: openaiEmbedding({ inputTypeMember: 'input_type', parts: 'public' }),
  rerank: rerankAdapter({ images: 'public' }),
};
