import type { ProviderKind } from './provider.ts';

/** The version of the form that the `messages` format speaks; the form is refused without it. */
const VERSION = '2023-06-01';

/**
 * Any service that speaks the messages form. Beta features are opted into by a header, which the client may set: without
 * it the bodies that need one are refused.
 */
export const messages: ProviderKind = {
  id: 'messages',
  name: 'Messages API',
  speaks: 'messages',
  headers: (credential) => ({
    'anthropic-version': VERSION,
    ...(credential !== null && { 'x-api-key': credential }),
  }),
  forwards: ['anthropic-beta'],
  origin: 'anthropic-claude-v1',
  dialect: { messages: { unsignedThinking: true, threads: true } },
  countsTokens: true,
};
