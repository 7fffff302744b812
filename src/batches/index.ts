/**
 * Batches: many requests (items) of one endpoint, submitted together and run in the background within 24 hours.
 *
 *  - `operations.ts` is `/batches` in the gateway's own shape
 *  - `submission/`: `submit.ts` accepts a batch, `item-intake.ts` checks and stores its items while they arrive,
 *    `affordable.ts` refuses a batch that no budget can pay for
 *  - `running/`: in each process `runner.ts` looks for unfinished batches, and `run.ts` sends the items of one through the
 *    inference pipeline; `turns.ts`, `priority.ts` and `pace.ts` decide when an item begins
 *  - `native/`: items that run in the batch interface of a provider instead
 *  - `results/`: `writer.ts` stores one for each item, `lines.ts` serves them, `usage.ts` sums them
 *  - states: `batch.ts` has the transitions, `conclude.ts` makes them, `jobs.ts` removes batches after the retention
 *  - `anthropic/`, `openai/`: the APIs of their SDKs. Batches of `openai/` read their items from a file and write results to files
 *  - `callbacks/`: signed events to the client's server when a batch has ended
 *
 * Not here: what happens to one request (`inference/`).
 */
export { batchMigrations } from './migrations/index.ts';
export { type BatchParts, batchOperations, endBatches } from './operations.ts';
export { BatchRunner } from './running/runner.ts';
