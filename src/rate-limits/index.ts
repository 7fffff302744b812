/**
 * Rate limits: exact limits on requests and tokens per key and per workspace, in UTC minutes, hours and days, over all
 * processes. Usage counts in the window in which the request was accepted. Processes lease parts of a limit from
 * PostgreSQL (`limiter.ts`, `lease-wait-queue.ts`), so a request far from the limit needs no query. If a process dies, its
 * leased share is lost until the window ends. Not here: spend limits (`spend/`).
 */
export { Limiter } from './limiter.ts';
export {
  compileLimits,
  type RateLimit,
  type RateLimits,
  type RateRefusal,
  readRateLimits,
  refusalError as rateLimitError,
} from './limits.ts';
export { rateLimitMigrations } from './migrations/index.ts';
export type { RateLimitHold } from './rate-limit-hold.ts';
export { RateLimitsSchema } from './schema.ts';
