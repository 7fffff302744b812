import type { ProviderKind } from '../provider.ts';

/** The API version that the `messages` format speaks; required by the service. */
const VERSION = '2023-06-01';

/**
 * Any service that speaks the messages format. Clients enable beta features by a header, which is forwarded, because
 * bodies that use one are rejected without it.
 */
export const messages: ProviderKind = {
  id: 'messages',
  name: 'Messages API',
  speaks: 'messages',
  guide: { verifiedBy: 'recording', quirks: 'the plain format, for any other service' },
  headers: (credential) => ({
    'anthropic-version': VERSION,
    ...(credential !== null && { 'x-api-key': credential }),
  }),
  forwards: ['anthropic-beta'],
  origin: 'anthropic-claude-v1',
  dialect: { messages: { unsignedThinking: true, threads: true } },
  countsTokens: true,
};
