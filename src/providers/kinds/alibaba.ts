import { openaiEmbedding } from '../../formats/embedding/index.ts';
import type { ProviderKind } from '../provider.ts';
import { chat } from './chat.ts';

/**
 * Alibaba Cloud Model Studio, international endpoint; accounts of other regions set their own `base_url`. Thinking has
 * parameters of its own, and a prefill is sent as a `partial` message
 * (alibabacloud.com/help/en/model-studio/deep-thinking and .../partial-mode).
 */
export const alibaba: ProviderKind = {
  ...chat,
  id: 'alibaba',
  name: 'Alibaba Cloud',
  baseUrl: 'https://dashscope-intl.aliyuncs.com/compatible-mode/v1',
  environment: 'DASHSCOPE_API_KEY',
  author: 'qwen',
  bareModels: /^(qwen|qwq)/,
  service: { role: 'vendor', registryId: 'alibaba' },
  guide: { verifiedBy: 'documentation', quirks: '`enable_thinking`, `thinking_budget`, `partial`' },
  dialect: { chat: { reasoning: 'enable_thinking', prefill: 'partial' } },
  // alibabacloud.com/help/en/model-studio/text-embedding-synchronous-api
  embedding: openaiEmbedding({ maxInputs: 10, takesTokens: false, takesUser: false }),
};
