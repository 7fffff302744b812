import { completionAdapter } from '../../formats/completion/index.ts';
import { openaiEmbedding } from '../../formats/embedding/index.ts';
import { entriesOf, modelNamed } from '../local-models.ts';
import type { ProviderKind } from '../provider.ts';
import { chat } from './chat.ts';

/**
 * An Ollama server on this machine, without a credential. It supports three efforts and `none`
 * (docs.ollama.com/api/openai-compatibility).
 */
export const ollama: ProviderKind = {
  ...chat,
  id: 'ollama',
  name: 'Ollama',
  baseUrl: 'http://127.0.0.1:11434/v1',
  author: 'ollama',
  guide: { verifiedBy: 'documentation', quirks: 'errors also by recording; discovered automatically' },
  dialect: {
    chat: {
      reasoningRules: [{ words: { minimal: 'low', xhigh: 'high', max: 'high' } }],
      thinkTags: true,
      mediaBytes: ['image'],
    },
  },
  completion: completionAdapter({ able: ['suffix'] }),
  embedding: openaiEmbedding({ takesTokens: false, takesUser: false }),
  discovery: {
    path: '/api/tags',
    models: (answer) =>
      entriesOf(answer, 'models')?.flatMap(({ name, remote_host, remote_model }) =>
        modelNamed(name, remote_host || remote_model || /[:-]cloud$/.test(String(name)) ? { remote: true } : {}),
      ),
  },
};
