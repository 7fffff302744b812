/**
 * Stored responses: `store`, `background` and `previous_response_id` of `POST /responses`, and `/responses/{id}`. The state is the
 * gateway's own whatever provider answers; providers always get stateless requests with the whole input. Encrypted at rest,
 * visible in one workspace, removed after `retention.responses_days`.
 *
 * Not here: the format (`formats/responses/`), how a request is answered (`inference/`), the log of inputs and outputs
 * (`transcripts/`).
 */
export { answerWithState } from './create.ts';
export { responseMigrations } from './migrations/index.ts';
export { createResponses, type ResponseOperationParts, responseOperations } from './operations.ts';
export { sealedResponseKeys } from './sealed.ts';
export { deleteResponsesOf as endResponses } from './store.ts';
