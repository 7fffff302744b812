import { openaiEmbedding } from '../../formats/embedding/index.ts';
import { entriesOf, lengthOf, modelNamed } from '../local-models.ts';
import type { ProviderKind } from '../provider.ts';
import { chat } from './chat.ts';

/**
 * An LM Studio server on this machine. It rejects tool choice objects and the output format `json_object` with 400
 * (lmstudio-ai/lmstudio-bug-tracker 670, 189).
 */
export const lmstudio: ProviderKind = {
  ...chat,
  id: 'lmstudio',
  name: 'LM Studio',
  baseUrl: 'http://127.0.0.1:1234/v1',
  author: 'lmstudio',
  guide: { verifiedBy: 'documentation', quirks: 'tool choices as strings, JSON by schema, discovered automatically' },
  dialect: { chat: { toolChoiceWords: true, jsonBySchema: true, thinkTags: true } },
  embedding: openaiEmbedding({ takesTokens: false, takesUser: false, takesEncoding: false }),
  discovery: {
    path: '/api/v0/models',
    models: (answer) => {
      const models = entriesOf(answer, 'data')?.filter(({ type, state }) => type !== undefined && state !== undefined);
      return models?.flatMap(({ id, type, loaded_context_length, max_context_length }) =>
        type === 'llm' || type === 'vlm'
          ? modelNamed(id, { images: type === 'vlm', ...lengthOf(loaded_context_length ?? max_context_length) })
          : [],
      );
    },
  },
};
