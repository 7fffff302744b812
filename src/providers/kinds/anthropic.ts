import { anthropicBatches } from '../batches/anthropic.ts';
import { claudeTools } from '../native-tools.ts';
import type { ProviderKind } from '../provider.ts';
import { messages } from './messages.ts';

/** Anthropic, the vendor of the messages format. */
export const anthropic: ProviderKind = {
  ...messages,
  id: 'anthropic',
  name: 'Anthropic',
  baseUrl: 'https://api.anthropic.com/v1',
  environment: 'ANTHROPIC_API_KEY',
  author: 'anthropic',
  bareModels: /^claude-/,
  service: {
    role: 'vendor',
    registryId: 'anthropic',
    policies: {
      privacyPolicyUrl: 'https://www.anthropic.com/legal/privacy',
      termsOfServiceUrl: 'https://www.anthropic.com/legal/commercial-terms',
      statusPageUrl: 'https://status.anthropic.com/',
      headquarters: 'US',
    },
  },
  guide: { verifiedBy: 'recording', quirks: 'threads and web search; beta features by the header `anthropic-beta`' },
  origin: 'anthropic-claude-v1',
  dialect: { messages: { threads: true, webSearch: true } },
  nativeTools: claudeTools,
  batches: anthropicBatches,
  // The model list is paginated.
  path: ({ operation, path: usual }) => (operation === 'models' ? `${usual}?limit=1000` : usual),
};
