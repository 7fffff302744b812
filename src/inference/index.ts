/**
 * Inference: one request from acceptance to its row. `serve.ts` is the table of contents; `operations/` is the only
 * folder that knows HTTP. Not here: wire formats (`formats/`), upstream services (`providers/`), keys and callers
 * (`access/`), the ledger and budgets (`spend/`).
 */
export { accept } from './accept.ts';
export { askAhead } from './admission/ask-ahead.ts';
export { Concurrency } from './admission/concurrency.ts';
export { budgetsOf } from './admission/cost-bounds.ts';
export { Identities } from './admission/identity.ts';
export type { RateDefaults } from './admission/rate-limits.ts';
export { regionOf } from './admission/region.ts';
export { asGatewayError } from './answer/error-response.ts';
export type { Sink } from './answer/sink.ts';
export { WholeSink } from './answer/whole-sink.ts';
export { type LeastPrice, leastTokens, type PromptTerms, promptTerms } from './batched/least-price.ts';
export { atBatch, type BatchableCall, encodeForBatch, hasBatches } from './batched/prepare.ts';
export { settleBatched } from './batched/settle.ts';
export { RequestContext, type UpstreamJob } from './context.ts';
export { DocxReader } from './documents/docx-reader.ts';
export { createOcr } from './documents/ocr.ts';
export { PageReader } from './documents/page-reader.ts';
export { PdfReader } from './documents/pdf-reader.ts';
export { embed } from './embed.ts';
export { inferenceMigrations } from './migrations/index.ts';
export { acceptExchange } from './operations/accept-exchange.ts';
export { countTokens } from './operations/count-tokens.ts';
export { INFERENCE_ERRORS } from './operations/event-schema.ts';
export { HttpSink } from './operations/http-sink.ts';
export { type InferenceLimits, inferenceOperations } from './operations/operations.ts';
export type { AttemptOutcome, InferenceParts } from './parts.ts';
export { isRouterModel, ROUTERS, requestedPlugins, routerModels, withPluginSettings } from './plugins/index.ts';
export { createModerator } from './plugins/moderation/moderator.ts';
export type { AcceptedRequest, AnyFormat, RequestAbout } from './request.ts';
export { RequestsInFlight } from './requests-in-flight.ts';
export { type ResumedJob, resumeJob } from './resumed-job.ts';
export {
  type AccountPolicy,
  type Candidate,
  type ContinuedWork,
  Credentials,
  credentialOf,
  fingerprint,
  Health,
  leavesEndpoint,
  notConfigured,
  Sessions,
  targetOf,
} from './routing/index.ts';
export { Threads } from './routing/threads.ts';
export { serve, serveInContext } from './serve.ts';
export { userHashSecret } from './store.ts';
export { TokenCounter } from './tokens/counter.ts';
export { RequestContainers } from './tools/index.ts';
export { RememberedThinking } from './turns/thinking-memory.ts';
export { createWebSearch } from './web-search/index.ts';
