/**
 * Batches: many requests of one endpoint, sent at once and run in the background within 24 hours. `submit.ts`
 * checks and stores the items while they arrive; each process looks for unfinished batches (`runner.ts`), takes groups of
 * their items (`run.ts`), sends them through the inference pipeline and writes one result for each; `conclude.ts` moves
 * the batch through its states (`batch.ts`). `anthropic/` serves the same batches in the shape of Anthropic's API.
 * `callbacks/` tells the client's server when a batch has ended.
 *
 * `openai/` has the batches of OpenAI's clients: it reads the items from an uploaded file in the background, and writes the
 * results to files.
 *
 * Not here: what happens to one request (`inference/`).
 */
export type { CallbackOutcome, CallbackParts } from './callbacks/deliver.ts';
export { sealedCallbackSecrets } from './callbacks/secrets.ts';
export { batchMigrations } from './migrations/index.ts';
export { type BatchParts, batchOperations, endBatches } from './operations.ts';
export { BatchRunner } from './runner.ts';
