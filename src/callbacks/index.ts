/**
 * Callbacks: signed events to a client's server when a batch or video ends. This folder checks URLs, keeps the secrets of
 * workspaces, signs events, and runs the delivery job with its retries.
 *
 * Not here: what ends and what its event says (`CallbackSubjects`), and the tables; both are in the folders that have callbacks.
 */
export { CALLBACK_STATES, type CallbackTable, findCallback, insertCallback } from './callback.sql.ts';
export {
  type CallbackEvent,
  type CallbackJobs,
  type CallbackOutcome,
  type CallbackParts,
  type CallbackSubjects,
  callbackJobs,
} from './deliver.ts';
export { endCallbackSecrets } from './secrets.sql.ts';
export { type CallbackSecret, currentSecret, rotateSecret, sealedCallbackSecrets } from './secrets.ts';
export { checkCallbackUrl } from './url.ts';
