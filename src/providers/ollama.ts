import { chat } from './chat.ts';
import type { ProviderKind } from './provider.ts';

/** An Ollama server on this machine; it needs no credential. */
export const ollama: ProviderKind = {
  ...chat,
  id: 'ollama',
  name: 'Ollama',
  baseUrl: 'http://127.0.0.1:11434/v1',
  author: 'ollama',
};
