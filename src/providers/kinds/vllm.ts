import { completionAdapter } from '../../formats/completion/index.ts';
import { openaiEmbedding } from '../../formats/embedding/index.ts';
import { rerankAdapter } from '../../formats/rerank/index.ts';
import { lengthOf, modelNamed, ownedBy } from '../local-models.ts';
import type { ProviderKind } from '../provider.ts';
import { chat } from './chat.ts';

/**
 * A vLLM server. Some chat templates require a single system message and strict alternation: set `strict_template:
 * true` for them; other servers receive the messages unchanged. Without a reasoning parser the thinking is part of the
 * text.
 */
export const vllm: ProviderKind = {
  ...chat,
  id: 'vllm',
  name: 'vLLM',
  baseUrl: 'http://127.0.0.1:8000/v1',
  author: 'vllm',
  guide: {
    verifiedBy: 'recording',
    quirks: '`strict_template: true` for templates that need alternating roles; thinking in the text without a parser',
  },
  dialect: { chat: { grammar: 'structured_outputs', reasoningReplay: 'reasoning', thinkTags: true } },
  completion: completionAdapter({ able: ['prompts', 'tokens', 'echo'] }),
  // Some versions return base64 of doubles.
  embedding: openaiEmbedding({ takesEncoding: false }),
  rerank: rerankAdapter(),
  discovery: {
    path: '/v1/models',
    models: (answer) =>
      ownedBy(answer, 'vllm')?.flatMap(({ id, max_model_len }) => modelNamed(id, lengthOf(max_model_len))),
  },
};
