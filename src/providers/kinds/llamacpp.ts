import { completionAdapter } from '../../formats/completion/index.ts';
import { openaiEmbedding } from '../../formats/embedding/index.ts';
import { rerankAdapter } from '../../formats/rerank/index.ts';
import { type Json, lengthOf, modelNamed, ownedBy } from '../local-models.ts';
import type { ProviderKind } from '../provider.ts';
import { chat } from './chat.ts';

/** A llama.cpp server on this machine. It supports only the three tool choice words (tools/server/README.md). */
export const llamacpp: ProviderKind = {
  ...chat,
  id: 'llamacpp',
  name: 'llama.cpp',
  baseUrl: 'http://127.0.0.1:8080/v1',
  author: 'llamacpp',
  guide: { verifiedBy: 'documentation', quirks: 'tool choices as strings, discovered automatically' },
  dialect: {
    chat: { grammar: 'grammar', toolChoiceWords: true, reasoningReplay: 'reasoning_content', thinkTags: true },
  },
  completion: completionAdapter({ able: ['prompts', 'tokens'] }),
  embedding: openaiEmbedding({ takesUser: false }),
  rerank: rerankAdapter(),
  discovery: {
    path: '/v1/models',
    models: (answer) =>
      ownedBy(answer, 'llamacpp')?.flatMap(({ id, meta }) =>
        modelNamed(id, lengthOf((meta as Json | undefined)?.['n_ctx'])),
      ),
  },
};
