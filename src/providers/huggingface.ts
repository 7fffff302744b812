import { chat } from './chat.ts';
import type { ProviderKind } from './provider.ts';

/** Hugging Face's router in front of many services; its model names have a slash of their own. */
export const huggingface: ProviderKind = {
  ...chat,
  id: 'huggingface',
  name: 'Hugging Face',
  baseUrl: 'https://router.huggingface.co/v1',
  environment: 'HF_TOKEN',
  author: 'huggingface',
};
