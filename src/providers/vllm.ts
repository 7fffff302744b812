import { completionAdapter } from '../formats/completion/index.ts';
import { openaiEmbedding } from '../formats/embedding/index.ts';
import { rerankAdapter } from '../formats/rerank/index.ts';
import { chat } from './chat.ts';
import type { ProviderKind } from './provider.ts';

/**
 * A vLLM server. Some of the templates that it runs take one system message and strict alternation: such a provider is
 * marked with `strict_template: true`, others get the messages as they are. Without a reasoning parser the thinking
 * stands in the text.
 */
export const vllm: ProviderKind = {
  ...chat,
  id: 'vllm',
  name: 'vLLM',
  baseUrl: 'http://127.0.0.1:8000/v1',
  author: 'vllm',
  dialect: { chat: { grammar: 'structured_outputs', reasoningReplay: 'reasoning', thinkTags: true } },
  completion: completionAdapter({ able: ['prompts', 'tokens', 'echo'] }),
  // Some of its versions write base64 of doubles.
  embedding: openaiEmbedding({ takesEncoding: false }),
  rerank: rerankAdapter(),
};
