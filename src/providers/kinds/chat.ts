import { completionAdapter } from '../../formats/completion/index.ts';
import { openaiEmbedding } from '../../formats/embedding/index.ts';
import { openaiModeration } from '../../formats/moderation/index.ts';
import { rerankAdapter } from '../../formats/rerank/index.ts';
import { openaiSpeech } from '../../formats/speech/index.ts';
import { openaiTranscription } from '../../formats/transcription/index.ts';
import { openaiVideos } from '../../formats/video/index.ts';
import { bearer } from '../auth/bearer.ts';
import type { ProviderKind } from '../provider.ts';

/** A chat completions service without quirks. Kinds that differ from it only in data extend it. */
export const chat: ProviderKind = {
  id: 'chat',
  name: 'Chat Completions API',
  speaks: 'chat',
  headers: bearer,
  origin: 'unknown',
  dialect: {},
};

/** The kind of this name: an unknown server, which may also have embeddings, rerank, speech and transcription at the usual paths. */
export const anyChat: ProviderKind = {
  ...chat,
  guide: {
    verifiedBy: 'recording',
    quirks: 'the plain format, for any other service (recordings of Snowflake and Databricks)',
  },
  dialect: { chat: { grammar: 'response_format', python: true, customTools: 'relayed' } },
  completion: completionAdapter(),
  embedding: openaiEmbedding({ inputTypeMember: 'input_type', parts: 'public' }),
  rerank: rerankAdapter({ images: 'public' }),
  speech: openaiSpeech({ voice: 'alloy', instructed: /./ }),
  moderation: openaiModeration(),
  video: openaiVideos,
  transcription: openaiTranscription(),
};
