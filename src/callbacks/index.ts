/**
 * Callbacks: signed events to a client's server when something of it has ended, such as a batch or a video. Here are the
 * check of the URL, the secrets of workspaces, signatures, and the job with its retries. What ends, and what its event says, is
 * described by the folders that have callbacks (`CallbackSubjects`), which also own the tables.
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
