/**
 * Batches: many requests of one endpoint, sent at once and run in the background within 24 hours. `submit.ts`
 * checks and stores the items while they arrive; a background job per batch (`jobs.ts`) wakes up processes, which take
 * groups of items (`run.ts`), send them through the inference pipeline and write one result for each; `conclude.ts` moves
 * the batch through its states (`batch.ts`). `anthropic/` serves the same batches in the shape of Anthropic's API.
 *
 * Not here: what happens to one request (`inference/`), waking up and taking over from dead processes (`jobs/`).
 */
export { type BatchJobs, batchJobs } from './jobs.ts';
export { batchMigrations } from './migrations/index.ts';
export { type BatchParts, batchOperations, endBatches } from './operations.ts';
