import { chat } from './chat.ts';
import type { ProviderKind } from './provider.ts';

/** Alibaba Cloud Model Studio, international address; accounts of other regions set their own `base_url`. */
export const alibaba: ProviderKind = {
  ...chat,
  id: 'alibaba',
  name: 'Alibaba Cloud',
  baseUrl: 'https://dashscope-intl.aliyuncs.com/compatible-mode/v1',
  environment: 'DASHSCOPE_API_KEY',
  author: 'qwen',
  bareModels: /^(qwen|qwq)/,
};
