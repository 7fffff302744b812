import { bearer } from './bearer.ts';
import type { ProviderKind } from './provider.ts';

/** Any service that speaks chat completions, without quirks. The kinds that differ from it in data only start from it. */
export const chat: ProviderKind = {
  id: 'chat',
  name: 'Chat Completions API',
  speaks: 'chat',
  headers: bearer,
  origin: 'unknown',
  dialect: {},
};
