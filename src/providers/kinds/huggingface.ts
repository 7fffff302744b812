import type { ProviderKind } from '../provider.ts';
import { chat } from './chat.ts';

/** Hugging Face's router to many services; its model names contain a slash. */
export const huggingface: ProviderKind = {
  ...chat,
  id: 'huggingface',
  name: 'Hugging Face',
  baseUrl: 'https://router.huggingface.co/v1',
  environment: 'HF_TOKEN',
  author: 'huggingface',
  service: { role: 'host', registryId: 'huggingface' },
  guide: { verifiedBy: 'recording', quirks: 'streams without an end marker' },
};
