/**
 * Inference: one request from acceptance to its row. `serve.ts` is the table of contents; `operations.ts` is the only
 * file that knows HTTP. Not here: wire formats (`formats/`), upstream services (`providers/`), keys and callers
 * (`access/`), the ledger and budgets (`spend/`).
 */
export { Concurrency } from './concurrency.ts';
export { budgetsOf } from './govern.ts';
export { Identities } from './identity.ts';
export { inferenceMigrations } from './migrations/index.ts';
export { type InferenceLimits, inferenceOperations } from './operations.ts';
export type { RateDefaults } from './pace.ts';
export type { AttemptOutcome, InferenceParts } from './parts.ts';
export { regionOf } from './region.ts';
export type { InferenceRequest, RequestAbout, SingleRequest } from './request.ts';
export { Credentials, Health, leavesEndpoint, type RoutingPolicy, Sessions } from './routing/index.ts';
export { Running } from './running.ts';
export { serve } from './serve.ts';
export type { Sink } from './sink.ts';
export { userHashSecret } from './store.ts';
export { RememberedThinking } from './thinking-memory.ts';
export { Threads } from './threads.ts';
export { TokenCounter } from './tokens/counter.ts';
